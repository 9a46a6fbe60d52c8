#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace linserve {

// Reads the tensors of a model directory; fails the test if they cannot be read.
TensorMap ReadWeights(const std::string& directory);
void WriteWeights(const std::string& directory, const TensorMap& weights);

// Gives every parameter random values that matter, also those that start at 0 or 1.
void RandomiseWeights(const std::string& directory, uint64_t seed = 1);

}  // namespace linserve
