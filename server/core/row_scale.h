#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/tensor.h"

namespace linserve {

// Results in I8 are a row's values over its largest magnitude, times 127. Each such output [..., d]
// comes with another, F32 [..., 1]: what its rows are to be multiplied by.

// The name of an output's scale.
std::string ScaleOf(const std::string& output);

// The name of the output that `name` is the scale of, or `name` itself.
std::string WithoutScale(const std::string& name);

// Replaces each I8 output that has a scale by its values in F32, and drops the scale.
// INVALID_ARGUMENT if the two do not fit.
absl::Status Dequantize(TensorMap& outputs);

}  // namespace linserve
