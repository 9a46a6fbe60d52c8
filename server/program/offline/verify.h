#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/tensor/comparison.h"
#include "program/offline/offline.h"

namespace linserve {

// Measures how far a model's first output computed in `dtype` is from that in F32, over random
// sequences of lengths up to `longest` (or of the only one that it takes).
absl::StatusOr<Comparison> CompareWithF32(OfflineModel model, const std::string& dtype,
                                          int64_t longest);

}  // namespace linserve
