#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Holds what a safetensors file contains (https://github.com/huggingface/safetensors, format of
// version 0.4). The file is an 8-byte little-endian header length, a JSON header {name: {dtype,
// shape, data_offsets}}, then the data.
struct SafetensorsFile {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;  // the header's "__metadata__"
};

// Reads the file at `path`, each tensor into memory of its own, and checks everything about it
// before the first tensor is read. INVALID_ARGUMENT names the file, the tensor, the offset, what
// stands there and what was expected. NOT_FOUND means that the file cannot be opened, DATA_LOSS
// that it was written to meanwhile, RESOURCE_EXHAUSTED that it is larger than the memory that there
// is.
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path);

// Reads the shapes of a file's tensors, as its header has them, and none of them. Its errors are
// those of ReadSafetensors(), but that nothing is checked except the form of the header.
absl::StatusOr<std::map<std::string, Shape>> ReadSafetensorsShapes(const std::string& path);

// Checks a safetensors file whose bytes are in memory, kept alive by `owner`: the tensors view
// them. Its errors are those of ReadSafetensors(), with `name` in place of the path.
absl::StatusOr<SafetensorsFile> ParseSafetensors(const std::byte* bytes, size_t size,
                                                 const std::shared_ptr<const void>& owner,
                                                 const std::string& name);

// Writes a file that Python's safetensors reads. The header is padded with spaces so that the data
// begin at a multiple of 8; the tensors stand in the order of decreasing alignment and then of
// their names. The file is written beside `path` and renamed, so that a reader never sees half of
// it.
absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace linserve
