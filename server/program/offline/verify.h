#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/comparison.h"
#include "program/offline/offline.h"

namespace linserve {

// Says how far a model's first output computed in `dtype` is from that in F32.
struct Verification {
  std::string dtype;  // as the option names it
  Comparison rows;
  // Counts the sequences to which another one is nearest now, by the means of their rows.
  int64_t changed_neighbours = 0;
  int64_t sequences = 0;
};

// Verifies each type that this CPU computes in besides F32: over the sequences of a file of inputs,
// as `linserve run` takes them, or without one over random sequences of lengths up to `longest` (or
// of the only one that the model takes).
absl::StatusOr<std::vector<Verification>> VerifyTypes(OfflineModel model, const std::string& input,
                                                      int64_t longest);

// Writes "bf16 to f32    largest difference ..., nearest neighbour changed for 0 of 64".
std::string ToString(const Verification& verification);

}  // namespace linserve
