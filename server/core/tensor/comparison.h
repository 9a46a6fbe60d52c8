#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Says how far two tensors of float types and equal shape are from each other. Rows are along the
// last axis; rows of zeros on both sides (padding) have no direction and are left out of the
// cosines.
struct Comparison {
  double largest = 0;          // absolute difference; infinite where one side is no number
  double mean = 0;             // absolute difference
  double mean_cosine = 1;      // over rows
  double smallest_cosine = 1;  // over rows
  int64_t rows = 0;            // rows that have a direction
  int64_t elements = 0;

  // Takes in what another pair of tensors showed.
  void Add(const Comparison& other);
};

// Compares two tensors. INVALID_ARGUMENT says how their shapes or types differ.
absl::StatusOr<Comparison> Compare(const Tensor& a, const Tensor& b);

// Writes "largest difference 2.1e-06, mean 3.0e-07, cosine mean 0.999999 smallest 0.999998 over 80
// rows".
std::string ToString(const Comparison& comparison);

}  // namespace linserve
