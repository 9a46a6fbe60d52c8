#include "cuda/kernels/launch.h"

namespace linserve::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, typename U>
__global__ void AddPositionKernel(const __grid_constant__ PositionArguments<T, U> arguments,
                                  int64_t vectors) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < vectors) AddPosition(arguments, index);
}

template <typename T, typename U>
__global__ void RotateKernel(const __grid_constant__ PositionArguments<T, U> arguments,
                             int64_t vectors) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < vectors) RotatePairs(arguments, index);
}

template <typename T>
__global__ void __launch_bounds__(PoolRows<T>::kWarps* kLanes)
    PoolRowsKernel(const __grid_constant__ PoolRowsArguments<T> arguments) {
  __shared__ float shared[PoolRows<T>::kFloats];
  const BlockIndex at{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), 0};
  PoolRows<T>::Run(arguments, at, shared);
}

template <typename T, int kReads>
__global__ void __launch_bounds__(NormRows<T, kReads>::kWarps* kLanes)
    NormRowsKernel(const __grid_constant__ NormRowsArguments<T> arguments) {
  NormRows<T, kReads>::Run(arguments, BlockIndex{static_cast<int>(blockIdx.x), 0, 0});
}

unsigned BlocksFor(int64_t vectors) {
  return static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
}

}  // namespace

template <typename T, typename U>
void LaunchAddPositions(const PositionArguments<T, U>& arguments, int64_t vectors,
                        cudaStream_t stream) {
  AddPositionKernel<<<BlocksFor(vectors), kThreads, 0, stream>>>(arguments, vectors);
}

template <typename T, typename U>
void LaunchRotate(const PositionArguments<T, U>& arguments, int64_t vectors, cudaStream_t stream) {
  RotateKernel<<<BlocksFor(vectors), kThreads, 0, stream>>>(arguments, vectors);
}

template <typename T>
void LaunchPoolRows(const PoolRowsArguments<T>& arguments, const BlockIndex& grid,
                    cudaStream_t stream) {
  PoolRowsKernel<<<dim3(grid.x, grid.y), PoolRows<T>::kWarps * kLanes, 0, stream>>>(arguments);
}

template <typename T, int kReads>
void LaunchNormRows(const NormRowsArguments<T>& arguments, const BlockIndex& grid,
                    cudaStream_t stream) {
  NormRowsKernel<T, kReads><<<grid.x, NormRows<T, kReads>::kWarps * kLanes, 0, stream>>>(arguments);
}

#define LINSERVE_NORM(T, kReads)                                                          \
  template void LaunchNormRows<T, kReads>(const NormRowsArguments<T>&, const BlockIndex&, \
                                          cudaStream_t)
#define LINSERVE_POSITIONS(T, U)                                                           \
  template void LaunchAddPositions(const PositionArguments<T, U>&, int64_t, cudaStream_t); \
  template void LaunchRotate(const PositionArguments<T, U>&, int64_t, cudaStream_t)
#define LINSERVE_ROWS(T)        \
  LINSERVE_POSITIONS(T, float); \
  LINSERVE_NORM(T, 1);          \
  LINSERVE_NORM(T, 2);          \
  LINSERVE_NORM(T, 4);          \
  template void LaunchPoolRows(const PoolRowsArguments<T>&, const BlockIndex&, cudaStream_t)

LINSERVE_ROWS(float);
LINSERVE_ROWS(c10::BFloat16);
LINSERVE_ROWS(c10::Half);
LINSERVE_POSITIONS(c10::BFloat16, c10::BFloat16);
LINSERVE_POSITIONS(c10::Half, c10::Half);

}  // namespace linserve::cuda
