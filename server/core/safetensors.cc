#include "core/safetensors.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/file.h"
#include "core/quote.h"
#include "core/safetensors_header.h"

namespace linserve {
namespace {

constexpr size_t kPrefixBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the limit of the Rust and Python readers

// An entry whose fields are all there and agree with each other.
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

absl::StatusOr<std::string_view> HeaderText(const std::byte* bytes, size_t size) {
  if (size < kPrefixBytes) {
    return absl::InvalidArgumentError("it ends at offset " + std::to_string(size) +
                                      ", expected 8 bytes of header length at offset 0");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes, kPrefixBytes);
  if (length > kLongestHeader) {
    return absl::InvalidArgumentError("the header length at offset 0 is " + std::to_string(length) +
                                      ", expected at most " + std::to_string(kLongestHeader));
  }
  if (length > size - kPrefixBytes) {
    return absl::InvalidArgumentError("the header length at offset 0 is " + std::to_string(length) +
                                      ", expected at most the " +
                                      std::to_string(size - kPrefixBytes) + " bytes that follow");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes) + kPrefixBytes, length);
  // The JSON parser would skip white space or a byte order mark, which the format forbids.
  if (text.empty() || text.front() != '{') {
    return absl::InvalidArgumentError("the header at offset 8 is not an object, expected '{'");
  }
  return text;
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
                                      std::to_string(data_size));
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

absl::StatusOr<SafetensorsFile> Parse(const std::byte* bytes, size_t size,
                                      const std::shared_ptr<const void>& owner) {
  const absl::StatusOr<std::string_view> text = HeaderText(bytes, size);
  if (!text.ok()) return text.status();
  absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(*text);
  if (!header.ok()) return header.status();

  const size_t data_begin = kPrefixBytes + text->size();
  const auto data_size = static_cast<int64_t>(size - data_begin);
  SafetensorsFile file;
  std::vector<Extent> extents;
  for (const SafetensorsEntry& entry : header->tensors) {
    const absl::StatusOr<Extent> extent = CheckEntry(entry, data_size);
    if (!extent.ok()) return extent.status();
    extents.push_back(*extent);
    const std::byte* data = bytes + data_begin + extent->begin;
    file.tensors.emplace(entry.name, Tensor(*entry.dtype, *entry.shape, data, owner));
  }
  if (absl::Status status = CheckCoverage(extents, data_size); !status.ok()) return status;
  file.metadata = std::move(header->metadata);
  return file;
}

}  // namespace

absl::StatusOr<SafetensorsFile> ParseSafetensors(const std::byte* bytes, size_t size,
                                                 const std::shared_ptr<const void>& owner,
                                                 const std::string& name) {
  absl::StatusOr<SafetensorsFile> file = Parse(bytes, size, owner);
  if (file.ok()) return file;
  return absl::InvalidArgumentError(InFile(name, std::string(file.status().message())));
}

absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path) {
  absl::StatusOr<MappedFile> file = MapFile(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<SafetensorsFile> parsed =
      ParseSafetensors(file->bytes, file->size, file->owner, path);
  if (parsed.ok()) parsed->mapping = *std::move(file);
  return parsed;
}

}  // namespace linserve
