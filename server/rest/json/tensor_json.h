#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/json/json_reader.h"
#include "core/tensor/tensor.h"

namespace linserve {

// These functions read and write the elements of a tensor as numbers, bools and strings of JSON.

// Appends the elements of nested arrays, or the only one, to `raw`, as raw contents of the datatype
// hold them. INVALID_ARGUMENT, which begins with `where`, says what is no such element. REQUIRES:
// `data` is a JSON value.
absl::Status ReadElements(const std::string& datatype, std::string_view data,
                          const JsonReader::GoOn& go_on, const std::string& where,
                          std::string& raw);

// Bounds the characters of a float in JSON, with what separates it from the next.
inline constexpr int64_t kLongestElement = 16;

// Appends a finite number with no more digits than it needs.
void AppendFloat(float value, std::string& text);

// Returns whether AppendElements() takes tensors of the type.
bool HasElements(DType dtype);

// Appends the elements as an array, each with no more digits than its type needs. OUT_OF_RANGE if
// one is NaN or infinite, which JSON has no form for.
absl::Status AppendElements(const Tensor& tensor, std::string& text);

}  // namespace linserve
