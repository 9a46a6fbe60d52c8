#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Holds what the header of a safetensors file says of one tensor; nothing but its form was checked.
struct SafetensorsEntry {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<std::vector<int64_t>> data_offsets;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Parses the JSON of a header. Returns INVALID_ARGUMENT, without the name of the file, for what is
// not JSON, for a field that the format does not have, and for a key that stands there twice.
// Memory is bounded by the size of `text`, and depth by the form of the header, whatever the text
// is.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text);

}  // namespace linserve
