#include "core/files/npy.h"

#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/files/file.h"
#include "core/files/npy_header.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are little-endian");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint32_t kLongestNpyHeader = 1 << 16;  // some 100 bytes are usual
constexpr size_t kAlignment = 64;                // alignment of the data, as NumPy writes it

absl::Status Malformed(const std::string& fault, const std::string& expected) {
  return absl::InvalidArgumentError(fault + ", expected " + expected);
}

// Returns the header's text, which stands after the magic, two bytes of version and its own length.
absl::StatusOr<std::string_view> HeaderText(std::string_view file) {
  if (file.substr(0, kMagic.size()) != kMagic) {
    return Malformed("it does not begin with the magic", "\\x93NUMPY at offset 0");
  }
  const size_t version_at = kMagic.size();
  if (file.size() < version_at + 2)
    return Malformed("it ends in its version", "2 bytes at offset 6");
  const int major = static_cast<unsigned char>(file[version_at]);
  const int minor = static_cast<unsigned char>(file[version_at + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return Malformed(
        "version " + std::to_string(major) + "." + std::to_string(minor) + " at offset 6",
        "1.0, 2.0 or 3.0");
  }
  const size_t length_at = version_at + 2;
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < length_at + length_bytes) {
    return Malformed("it ends in its header length",
                     std::to_string(length_bytes) + " bytes at offset 8");
  }
  uint32_t length = 0;
  std::memcpy(&length, file.data() + length_at, length_bytes);
  const std::string_view rest = file.substr(length_at + length_bytes);
  if (length > kLongestNpyHeader) {
    return Malformed("the header length at offset 8 is " + std::to_string(length),
                     "at most " + std::to_string(kLongestNpyHeader));
  }
  if (length > rest.size()) {
    return Malformed("the header length at offset 8 is " + std::to_string(length),
                     "at most the " + std::to_string(rest.size()) + " bytes that follow");
  }
  return rest.substr(0, length);
}

absl::StatusOr<Tensor> Parse(std::string_view file, std::shared_ptr<const void> owner) {
  const absl::StatusOr<std::string_view> text = HeaderText(file);
  if (!text.ok()) return text.status();
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(*text);
  if (!header.ok()) return header.status();

  const auto data_begin = static_cast<size_t>(text->data() + text->size() - file.data());
  const std::string_view data = file.substr(data_begin);
  const std::string form = std::string(Name(header->dtype)) + " " + ToString(header->shape);
  const std::optional<int64_t> bytes = CheckedByteSize(header->dtype, header->shape);
  if (!bytes) return Malformed(form + " overflows", "fewer than 2^63 bytes");
  if (static_cast<size_t>(*bytes) != data.size()) {
    return Malformed("the data at offset " + std::to_string(data_begin) + " are " +
                         std::to_string(data.size()) + " bytes",
                     std::to_string(*bytes) + " of " + form);
  }
  return Tensor(header->dtype, header->shape, data.data(), std::move(owner));
}

std::string FileHeader(const Tensor& tensor) {
  std::string text = NpyHeaderText({tensor.dtype(), tensor.shape()});
  const size_t prefix = kMagic.size() + 4;  // two bytes each of version and length
  const size_t total = (prefix + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(total - prefix - 1, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return header + text;
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(const std::byte* bytes, size_t size,
                                std::shared_ptr<const void> owner, const std::string& name) {
  absl::StatusOr<Tensor> tensor =
      Parse({reinterpret_cast<const char*>(bytes), size}, std::move(owner));
  if (tensor.ok()) return tensor;
  return absl::InvalidArgumentError(".npy file " + Quoted(name) + ": " +
                                    std::string(tensor.status().message()));
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  if (absl::Status fits = file->CheckFits(); !fits.ok()) return fits;
  const std::shared_ptr<std::byte[]> bytes(new std::byte[file->size()]);
  if (absl::Status read = file->Read(0, bytes.get(), file->size()); !read.ok()) return read;
  return ParseNpy(bytes.get(), file->size(), bytes, path);
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  if (tensor.dtype() == DType::kBF16) {
    const absl::StatusOr<Tensor> widened = Convert(tensor, DType::kF32);
    return widened.ok() ? WriteNpy(path, *widened) : widened.status();
  }
  if (tensor.shape().size() > kMostNpyAxes) {
    return Malformed(".npy file " + Quoted(path) + ": the tensor has " +
                         std::to_string(tensor.shape().size()) + " axes",
                     "at most " + std::to_string(kMostNpyAxes));
  }
  const std::string header = FileHeader(tensor);
  const std::string_view data(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  return ReplaceFile(path, {header, data});
}

}  // namespace linserve
