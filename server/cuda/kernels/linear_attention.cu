#include "cuda/kernels/launch.h"

namespace linserve::cuda {
namespace {

template <typename Kernel, typename T>
__global__ void __launch_bounds__(Kernel::kWarps* kLanes, Kernel::kBlocks)
    LinearAttentionKernel(const __grid_constant__ LinearAttentionArguments<T> arguments) {
  extern __shared__ __align__(16) unsigned char shared[];
  const BlockIndex at{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                      static_cast<int>(blockIdx.z)};
  Kernel::Run(arguments, at,
              SharedMemory<T>{reinterpret_cast<T*>(shared),
                              reinterpret_cast<float*>(shared + Kernel::kSharedBytes)});
}

template <int D, typename T>
__global__ void AddPartsKernel(const __grid_constant__ LinearAttentionArguments<T> arguments,
                               int64_t elements) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < elements) AddParts<D>(arguments, index);
}

}  // namespace

template <typename Kernel, typename T>
void LaunchLinearAttention(const LinearAttentionArguments<T>& arguments, const BlockIndex& grid,
                           cudaStream_t stream) {
  constexpr int kBytes = Kernel::kSharedBytes + Kernel::kFloats * static_cast<int>(sizeof(float));
  cudaFuncSetAttribute(LinearAttentionKernel<Kernel, T>,
                       cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LinearAttentionKernel<Kernel, T>
      <<<dim3(grid.x, grid.y, grid.z), Kernel::kWarps * kLanes, kBytes, stream>>>(arguments);
}

template <int D, typename T>
void LaunchAddParts(const LinearAttentionArguments<T>& arguments, int64_t elements,
                    cudaStream_t stream) {
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
  AddPartsKernel<D, T><<<blocks, kThreads, 0, stream>>>(arguments, elements);
}

#define LINSERVE_KERNEL_OF(Kernel, T, D, map)                                                \
  template void LaunchLinearAttention<Kernel<T, D, map>>(const LinearAttentionArguments<T>&, \
                                                         const BlockIndex&, cudaStream_t)
#define LINSERVE_MAP(T, D, map)                         \
  LINSERVE_KERNEL_OF(CausalLinearAttention, T, D, map); \
  LINSERVE_KERNEL_OF(SumKeys, T, D, map);               \
  LINSERVE_KERNEL_OF(WholeLinearAttention, T, D, map);  \
  LINSERVE_KERNEL_OF(AttendToKeys, T, D, map)
#define LINSERVE_LAUNCH(T, D)           \
  LINSERVE_MAP(T, D, FeatureMap::kExp); \
  LINSERVE_MAP(T, D, FeatureMap::kElu); \
  template void LaunchAddParts<D>(const LinearAttentionArguments<T>&, int64_t, cudaStream_t)

LINSERVE_LAUNCH(c10::BFloat16, 32);
LINSERVE_LAUNCH(c10::BFloat16, 64);
LINSERVE_LAUNCH(c10::BFloat16, 128);
LINSERVE_LAUNCH(c10::Half, 32);
LINSERVE_LAUNCH(c10::Half, 64);
LINSERVE_LAUNCH(c10::Half, 128);

}  // namespace linserve::cuda
