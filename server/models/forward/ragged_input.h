#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/rows/aten.h"
#include "core/sequence/signature.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {

// Says whether a sequence's rows lie along the first axis, and all others are fixed.
inline bool IsRagged(const InputSpec& spec) {
  return spec.axes[0].letter != '\0' &&
         std::all_of(spec.axes.begin() + 1, spec.axes.end(),
                     [](const Axis& axis) { return axis.letter == '\0'; });
}

// Returns so many rows of zeros [rows, ...] for an input that IsRagged(), as a model that computes
// in this type is given it on the device.
inline at::Tensor ZeroInput(const InputSpec& spec, int64_t rows, DType dtype,
                            const at::Device& device) {
  std::vector<int64_t> shape = {rows};
  for (size_t axis = 1; axis < spec.axes.size(); ++axis) shape.push_back(spec.axes[axis].size);
  const auto type = spec.kind == InputKind::kToken  ? at::kInt
                    : spec.kind == InputKind::kMask ? at::kBool
                                                    : ToScalarType(dtype);
  return at::zeros(shape, at::device(device).dtype(type));
}

}  // namespace linserve
