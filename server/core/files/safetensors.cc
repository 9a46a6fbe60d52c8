#include "core/files/safetensors.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/files/file.h"
#include "core/files/safetensors_header.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

constexpr size_t kPrefixBytes = 8;
// As many tensors as a network may have take less. The Rust and Python readers take 100 MB, whose
// entries would take a gigabyte.
constexpr uint64_t kLongestHeader = 32 << 20;
constexpr const char* kCutOff = "; the file is shorter than its header says: copy it again";

// Holds an entry whose fields are all there and agree with each other.
struct Extent {
  const SafetensorsEntry* entry;
  int64_t begin;
  int64_t end;
};

std::string InFile(const std::string& file, const std::string& fault) {
  return "safetensors file " + Quoted(file) + ": " + fault;
}

std::string Range(int64_t begin, int64_t end) {
  return "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

std::string InTensor(const Extent& extent) {
  return "tensor " + Quoted(extent.entry->name) + ": " + Range(extent.begin, extent.end);
}

// Returns the length of the header of a file of `size` bytes that begins with these.
absl::StatusOr<size_t> HeaderLength(const std::byte* bytes, size_t size) {
  if (size < kPrefixBytes) {
    return absl::InvalidArgumentError("it ends at offset " + std::to_string(size) +
                                      ", expected 8 bytes of header length at offset 0");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes, kPrefixBytes);
  const std::string found = "the header length at offset 0 is " + std::to_string(length);
  if (length > kLongestHeader) {
    return absl::InvalidArgumentError("it is no safetensors file: " + found +
                                      ", expected at most " + std::to_string(kLongestHeader));
  }
  if (length > size - kPrefixBytes) {
    return absl::InvalidArgumentError(found + ", expected at most the " +
                                      std::to_string(size - kPrefixBytes) + " bytes that follow" +
                                      kCutOff);
  }
  return static_cast<size_t>(length);
}

absl::StatusOr<Extent> CheckEntry(const SafetensorsEntry& entry, int64_t data_size) {
  const std::string tensor = "tensor " + Quoted(entry.name) + ": ";
  if (!entry.dtype || !entry.shape || !entry.data_offsets) {
    return absl::InvalidArgumentError(tensor + "a field is missing" +
                                      ", expected dtype, shape and data_offsets");
  }
  if (entry.data_offsets->size() != 2) {
    return absl::InvalidArgumentError(tensor + "data_offsets " + ToString(*entry.data_offsets) +
                                      ", expected [begin, end]");
  }
  const Extent extent = {&entry, (*entry.data_offsets)[0], (*entry.data_offsets)[1]};
  if (extent.begin > extent.end) {
    return absl::InvalidArgumentError(InTensor(extent) + ", expected begin <= end");
  }
  if (extent.end > data_size) {
    return absl::InvalidArgumentError(InTensor(extent) + " lie past the end, expected at most " +
                                      std::to_string(data_size) + kCutOff);
  }
  const std::string form = std::string(Name(*entry.dtype)) + " " + ToString(*entry.shape);
  const std::optional<int64_t> bytes = CheckedByteSize(*entry.dtype, *entry.shape);
  if (!bytes) {
    return absl::InvalidArgumentError(InTensor(extent) + ": " + form +
                                      " overflows, expected fewer than 2^63 bytes");
  }
  if (*bytes != extent.end - extent.begin) {
    return absl::InvalidArgumentError(InTensor(extent) + " are " +
                                      std::to_string(extent.end - extent.begin) +
                                      " bytes, expected " + std::to_string(*bytes) + " of " + form);
  }
  return extent;
}

// The format wants every byte of the data to belong to exactly one tensor.
absl::Status CheckCoverage(std::vector<Extent> extents, int64_t data_size) {
  std::sort(extents.begin(), extents.end(), [](const Extent& left, const Extent& right) {
    return std::tie(left.begin, left.end) < std::tie(right.begin, right.end);
  });
  int64_t covered = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != covered) {
      return absl::InvalidArgumentError(
          InTensor(extent) +
          (extent.begin < covered ? " overlap another tensor" : " leave a hole before them") +
          ", expected to begin at " + std::to_string(covered));
    }
    covered = extent.end;
  }
  if (covered == data_size) return absl::OkStatus();
  return absl::InvalidArgumentError("the tensors end at data offset " + std::to_string(covered) +
                                    " but the data at " + std::to_string(data_size) +
                                    ", expected no byte that belongs to no tensor");
}

// Gives the tensor of an entry.
using Fetch = absl::FunctionRef<absl::StatusOr<Tensor>(const Extent& extent)>;

// Reads a file whose header is `text`, and which has `data_size` bytes after it.
absl::StatusOr<SafetensorsFile> Read(std::string_view text, size_t data_size, Fetch fetch) {
  // The JSON parser would skip white space or a byte order mark, which the format forbids.
  if (text.empty() || text.front() != '{') {
    return absl::InvalidArgumentError("the header at offset 8 is not an object, expected '{'");
  }
  absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(text);
  if (!header.ok()) return header.status();
  std::vector<Extent> extents;
  for (const SafetensorsEntry& entry : header->tensors) {
    const absl::StatusOr<Extent> extent = CheckEntry(entry, static_cast<int64_t>(data_size));
    if (!extent.ok()) return extent.status();
    extents.push_back(*extent);
  }
  absl::Status covered = CheckCoverage(extents, static_cast<int64_t>(data_size));
  if (!covered.ok()) return covered;
  SafetensorsFile file;
  for (const Extent& extent : extents) {
    absl::StatusOr<Tensor> tensor = fetch(extent);
    if (!tensor.ok()) return tensor.status();
    file.tensors.emplace(extent.entry->name, *std::move(tensor));
  }
  file.metadata = std::move(header->metadata);
  return file;
}

absl::StatusOr<SafetensorsFile> Parse(const std::byte* bytes, size_t size,
                                      const std::shared_ptr<const void>& owner) {
  const absl::StatusOr<size_t> length = HeaderLength(bytes, size);
  if (!length.ok()) return length.status();
  const size_t data_begin = kPrefixBytes + *length;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + kPrefixBytes, *length);
  return Read(text, size - data_begin, [&](const Extent& extent) {
    const std::byte* data = bytes + data_begin + extent.begin;
    return Tensor(*extent.entry->dtype, *extent.entry->shape, data, owner);
  });
}

absl::StatusOr<std::string> ReadHeaderText(const InputFile& file) {
  std::array<std::byte, kPrefixBytes> prefix{};
  const size_t prefix_size = std::min(prefix.size(), file.size());
  absl::Status status = file.Read(0, prefix.data(), prefix_size);
  if (!status.ok()) return status;
  const absl::StatusOr<size_t> length = HeaderLength(prefix.data(), file.size());
  if (!length.ok()) return length.status();
  std::string text(*length, '\0');
  status = file.Read(kPrefixBytes, reinterpret_cast<std::byte*>(text.data()), text.size());
  if (!status.ok()) return status;
  return text;
}

// Returns memory for a tensor of a file. A large one has pages of its own: a load frees them one by
// one, and the heap would keep what lies between others.
std::pair<Tensor, std::byte*> Allocate(DType dtype, const Shape& shape) {
  constexpr int64_t kLarge = 1 << 20;
  const std::optional<int64_t> bytes = CheckedByteSize(dtype, shape);
  if (!bytes || *bytes < kLarge) return Tensor::AllocateUnfilled(dtype, shape);
  const auto size = static_cast<size_t>(*bytes);
  void* pages =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (pages == MAP_FAILED) return Tensor::AllocateUnfilled(dtype, shape);
  const std::shared_ptr<const void> owner(pages, [size](void* begin) { ::munmap(begin, size); });
  return {Tensor(dtype, shape, pages, owner), static_cast<std::byte*>(pages)};
}

absl::StatusOr<SafetensorsFile> ReadFrom(const InputFile& file) {
  absl::Status status = file.CheckFits();
  if (!status.ok()) return status;
  const absl::StatusOr<std::string> text = ReadHeaderText(file);
  if (!text.ok()) return text.status();
  const size_t data_begin = kPrefixBytes + text->size();
  auto read =
      Read(*text, file.size() - data_begin, [&](const Extent& extent) -> absl::StatusOr<Tensor> {
        auto [tensor, bytes] = Allocate(*extent.entry->dtype, *extent.entry->shape);
        const size_t begin = data_begin + static_cast<size_t>(extent.begin);
        absl::Status got = file.Read(begin, bytes, tensor.byte_size());
        if (!got.ok()) return got;
        return std::move(tensor);
      });
  if (!read.ok()) return read;
  status = file.CheckUnchanged();
  if (!status.ok()) return status;
  return read;
}

template <typename Result>
absl::StatusOr<Result> Named(const std::string& name, absl::StatusOr<Result> result) {
  if (result.ok()) return result;
  return absl::Status(result.status().code(), InFile(name, std::string(result.status().message())));
}

absl::StatusOr<std::map<std::string, Shape>> ShapesIn(const InputFile& file) {
  const absl::StatusOr<std::string> text = ReadHeaderText(file);
  if (!text.ok()) return text.status();
  const absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(*text);
  if (!header.ok()) return header.status();
  std::map<std::string, Shape> shapes;
  for (const SafetensorsEntry& entry : header->tensors) {
    shapes.emplace(entry.name, entry.shape.value_or(Shape()));
  }
  return shapes;
}

}  // namespace

absl::StatusOr<SafetensorsFile> ParseSafetensors(const std::byte* bytes, size_t size,
                                                 const std::shared_ptr<const void>& owner,
                                                 const std::string& name) {
  return Named(name, Parse(bytes, size, owner));
}

absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  return Named(path, ReadFrom(*file));
}

absl::StatusOr<std::map<std::string, Shape>> ReadSafetensorsShapes(const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  return Named(path, ShapesIn(*file));
}

}  // namespace linserve
