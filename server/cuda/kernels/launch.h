#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernels/causal_linear_attention.h"
#include "cuda/kernels/norm_rows.h"
#include "cuda/kernels/pool_rows.h"
#include "cuda/kernels/positions.h"
#include "cuda/kernels/project_length.h"
#include "cuda/kernels/softmax_attention.h"
#include "cuda/kernels/whole_linear_attention.h"

namespace linserve::cuda {

// These functions start kernels on a stream of the current device, of sm_80 or later. Their errors
// are the runtime's last error.

// Starts the kernel, and adds up its parts' shares of the result's `elements` where there are
// several.
template <typename T>
void Launch(const ProjectLengthArguments<T>& arguments, const BlockIndex& grid, int64_t elements,
            cudaStream_t stream);

template <typename T, int D, bool kDistances>
void Launch(const SoftmaxAttentionArguments<T>& arguments, const BlockIndex& grid,
            cudaStream_t stream);

// Starts a kernel of linear_attention.h, but for AddParts().
template <typename Kernel, typename T>
void LaunchLinearAttention(const LinearAttentionArguments<T>& arguments, const BlockIndex& grid,
                           cudaStream_t stream);

template <int D, typename T>
void LaunchAddParts(const LinearAttentionArguments<T>& arguments, int64_t elements,
                    cudaStream_t stream);

// These compute all vectors of rows, one thread each.
template <typename T, typename U>
void LaunchAddPositions(const PositionArguments<T, U>& arguments, int64_t vectors,
                        cudaStream_t stream);

template <typename T, typename U>
void LaunchRotate(const PositionArguments<T, U>& arguments, int64_t vectors, cudaStream_t stream);

template <typename T, int kReads>
void LaunchNormRows(const NormRowsArguments<T>& arguments, const BlockIndex& grid,
                    cudaStream_t stream);

template <typename T>
void LaunchPoolRows(const PoolRowsArguments<T>& arguments, const BlockIndex& grid,
                    cudaStream_t stream);

}  // namespace linserve::cuda
