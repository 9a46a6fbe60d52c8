#include "cuda/kernels/launch.h"

namespace linserve::cuda {
namespace {

template <typename T, int D>
__global__ void __launch_bounds__(AttendToSlots<T, D>::kWarps* kLanes, AttendToSlots<T, D>::kBlocks)
    AttendToSlotsKernel(const __grid_constant__ AttendToSlotsArguments<T> arguments) {
  extern __shared__ __align__(16) unsigned char shared[];
  const BlockIndex at{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                      static_cast<int>(blockIdx.z)};
  AttendToSlots<T, D>::Run(arguments, at, reinterpret_cast<T*>(shared));
}

}  // namespace

template <typename T, int D>
void Launch(const AttendToSlotsArguments<T>& arguments, const BlockIndex& grid,
            cudaStream_t stream) {
  using Kernel = AttendToSlots<T, D>;
  cudaFuncSetAttribute(AttendToSlotsKernel<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       Kernel::kSharedBytes);
  AttendToSlotsKernel<T, D>
      <<<dim3(grid.x, grid.y, grid.z), Kernel::kWarps * kLanes, Kernel::kSharedBytes, stream>>>(
          arguments);
}

#define LINSERVE_INSTANTIATE(T, D) \
  template void Launch<T, D>(const AttendToSlotsArguments<T>&, const BlockIndex&, cudaStream_t)
LINSERVE_INSTANTIATE(c10::BFloat16, 32);
LINSERVE_INSTANTIATE(c10::BFloat16, 64);
LINSERVE_INSTANTIATE(c10::BFloat16, 96);
LINSERVE_INSTANTIATE(c10::BFloat16, 128);
LINSERVE_INSTANTIATE(c10::Half, 32);
LINSERVE_INSTANTIATE(c10::Half, 64);
LINSERVE_INSTANTIATE(c10::Half, 96);
LINSERVE_INSTANTIATE(c10::Half, 128);

}  // namespace linserve::cuda
