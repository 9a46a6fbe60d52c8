#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "models/config/params.h"

namespace linserve {

// Returns 32 bytes that differ between models that compute different numbers: the SHA-256 of the
// configuration, the dtype, and of each tensor its name, shape, and first and last bytes, since to
// read all of a large file would hold up its loading.
std::string FingerprintOf(const NetworkConfig& config, DType dtype, const TensorMap& tensors);

}  // namespace linserve
