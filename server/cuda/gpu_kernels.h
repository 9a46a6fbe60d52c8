#pragma once

#include "attention/device/device_plugin.h"

namespace linserve {

// Returns the kernels of cuda/kernels as they run on a GPU, on the calling thread's stream. They
// throw c10::Error where a launch fails.
DeviceKernels GpuKernels();

}  // namespace linserve
