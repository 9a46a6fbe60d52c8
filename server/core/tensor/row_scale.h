#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Results in I8 are a row's values over its largest magnitude, times 127. Each such output [..., d]
// comes with an output of scales, F32 [..., 1], by which its rows are to be multiplied.

// Returns the name of an output's scale.
std::string ScaleOf(const std::string& output);

// Takes the scales of other outputs away from the requested ones: they come by themselves.
void DropScales(std::vector<std::string>& outputs);

// Replaces each I8 output that has a scale by its values in F32, and drops the scale. Returns
// INVALID_ARGUMENT if the two do not fit.
absl::Status Dequantize(TensorMap& outputs);

}  // namespace linserve
