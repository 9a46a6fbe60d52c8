#include "cuda/kernels/launch.h"

namespace linserve::cuda {
namespace {

template <typename T, int D, bool kDistances>
__global__ void __launch_bounds__(SoftmaxAttention<T, D, kDistances>::kWarps* kLanes,
                                  SoftmaxAttention<T, D, kDistances>::kBlocks)
    SoftmaxAttentionKernel(const __grid_constant__ SoftmaxAttentionArguments<T> arguments) {
  extern __shared__ __align__(16) unsigned char shared[];
  const BlockIndex at{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                      static_cast<int>(blockIdx.z)};
  SoftmaxAttention<T, D, kDistances>::Run(arguments, at, reinterpret_cast<T*>(shared));
}

}  // namespace

template <typename T, int D, bool kDistances>
void Launch(const SoftmaxAttentionArguments<T>& arguments, const BlockIndex& grid,
            cudaStream_t stream) {
  using Kernel = SoftmaxAttention<T, D, kDistances>;
  cudaFuncSetAttribute(SoftmaxAttentionKernel<T, D, kDistances>,
                       cudaFuncAttributeMaxDynamicSharedMemorySize, Kernel::kSharedBytes);
  SoftmaxAttentionKernel<T, D, kDistances>
      <<<dim3(grid.x, grid.y, grid.z), Kernel::kWarps * kLanes, Kernel::kSharedBytes, stream>>>(
          arguments);
}

#define LINSERVE_INSTANTIATE(T, D)                                                          \
  template void Launch<T, D, false>(const SoftmaxAttentionArguments<T>&, const BlockIndex&, \
                                    cudaStream_t);                                          \
  template void Launch<T, D, true>(const SoftmaxAttentionArguments<T>&, const BlockIndex&,  \
                                   cudaStream_t)
LINSERVE_INSTANTIATE(c10::BFloat16, 32);
LINSERVE_INSTANTIATE(c10::BFloat16, 64);
LINSERVE_INSTANTIATE(c10::BFloat16, 96);
LINSERVE_INSTANTIATE(c10::BFloat16, 128);
LINSERVE_INSTANTIATE(c10::Half, 32);
LINSERVE_INSTANTIATE(c10::Half, 64);
LINSERVE_INSTANTIATE(c10::Half, 96);
LINSERVE_INSTANTIATE(c10::Half, 128);

}  // namespace linserve::cuda
