#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "models/config/params.h"

namespace linserve {

// Returns 32 bytes by which models are told apart: the SHA-256 of the configuration, the dtype, and
// of each tensor its name, type, shape, and all of up to 256 KiB, or as many bytes of it in 64
// blocks at equal distances: to hash all of a large file would hold up its loading. What training
// changes changes some of them; weights that differ in a few numbers between the blocks are not
// told apart.
std::string FingerprintOf(const NetworkConfig& config, DType dtype, const TensorMap& tensors);

}  // namespace linserve
