#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace linserve {

// Returns what CUDA says of a GPU. It is read once, since that takes a while. Throws c10::Error.
const cudaDeviceProp& PropertiesOf(int64_t index);

}  // namespace linserve
