#include "cuda/kernels/launch.h"

namespace linserve::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(ProjectLength<T>::kWarps* kLanes, ProjectLength<T>::kBlocks)
    ProjectLengthKernel(const __grid_constant__ ProjectLengthArguments<T> arguments) {
  extern __shared__ __align__(16) unsigned char shared[];
  const BlockIndex at{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                      static_cast<int>(blockIdx.z)};
  ProjectLength<T>::Run(arguments, at, reinterpret_cast<T*>(shared));
}

template <typename T>
__global__ void AddSharesKernel(const __grid_constant__ ProjectLengthArguments<T> arguments,
                                int64_t elements) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < elements) AddShares(arguments, index);
}

}  // namespace

template <typename T>
void Launch(const ProjectLengthArguments<T>& arguments, const BlockIndex& grid, int64_t elements,
            cudaStream_t stream) {
  using Kernel = ProjectLength<T>;
  cudaFuncSetAttribute(ProjectLengthKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       Kernel::kSharedBytes);
  ProjectLengthKernel<T>
      <<<dim3(grid.x, grid.y, grid.z), Kernel::kWarps * kLanes, Kernel::kSharedBytes, stream>>>(
          arguments);
  if (arguments.sizes.parts == 1) return;
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
  AddSharesKernel<T><<<blocks, kThreads, 0, stream>>>(arguments, elements);
}

template void Launch(const ProjectLengthArguments<c10::BFloat16>&, const BlockIndex&, int64_t,
                     cudaStream_t);
template void Launch(const ProjectLengthArguments<c10::Half>&, const BlockIndex&, int64_t,
                     cudaStream_t);

}  // namespace linserve::cuda
