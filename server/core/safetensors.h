#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/file.h"
#include "core/tensor.h"

namespace linserve {

// A safetensors file (https://github.com/huggingface/safetensors, format of version 0.4): an
// 8-byte little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, data.
struct SafetensorsFile {
  TensorMap tensors;  // views into one mapping of the file, which lives as long as any of them
  std::map<std::string, std::string> metadata;  // "__metadata__"
  MappedFile mapping;                           // of a file that was read by its path
};

// Maps `path` read-only and checks everything about it before the first tensor is touched:
// INVALID_ARGUMENT names the file, the tensor, the offset, what stands there and what was
// expected; NOT_FOUND if the file cannot be opened. Never reads outside the file. A file must be
// replaced by renaming another over it, never written in place, while it is mapped.
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path);

// The same over bytes in memory, which `owner` keeps alive; `name` stands for the file in errors.
absl::StatusOr<SafetensorsFile> ParseSafetensors(const std::byte* bytes, size_t size,
                                                 const std::shared_ptr<const void>& owner,
                                                 const std::string& name);

// Writes a file that Python's safetensors reads: header padded with spaces so that the data begin
// at a multiple of 8, tensors in the order of decreasing alignment and then of their names.
// Writes beside `path` and renames, so that a reader never sees half a file.
absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace linserve
