#include "cuda/properties.h"

#include <c10/cuda/CUDAException.h>

#include <array>
#include <mutex>

namespace linserve {

const cudaDeviceProp& PropertiesOf(int64_t index) {
  constexpr size_t kMostDevices = 64;
  static std::array<cudaDeviceProp, kMostDevices> properties;
  static std::array<std::once_flag, kMostDevices> read;
  const auto place = static_cast<size_t>(index);
  std::call_once(read.at(place), [&] {
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties.at(place), static_cast<int>(index)));
  });
  return properties.at(place);
}

}  // namespace linserve
