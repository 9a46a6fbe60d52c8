#include "cuda/gpu_kernels.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>
#include <tuple>

#include "cuda/kernels/kernel_calls.h"
#include "cuda/kernels/launch.h"
#include "cuda/kernels/linear_attention_calls.h"
#include "cuda/kernels/row_calls.h"
#include "cuda/kernels/softmax_attention_calls.h"
#include "cuda/properties.h"

namespace linserve {
namespace {

// Says whether the GPU that the tensor is on has what our kernels are made for.
bool HasOurKernels(const at::Tensor& tensor) {
  return PropertiesOf(tensor.device().index()).major >= 8;
}

int64_t MultiprocessorsOf(const at::Tensor& tensor) {
  return PropertiesOf(tensor.device().index()).multiProcessorCount;
}

at::Tensor ProjectLengthOnGpu(const at::Tensor& rows, const at::Tensor& projection,
                              const LayoutTable& layout) {
  if (!HasOurKernels(rows)) return {};
  return cuda::CallProjectLength(
      rows, projection, layout, MultiprocessorsOf(rows),
      [](const auto& arguments, const cuda::BlockIndex& grid, int64_t elements) {
        cuda::Launch(arguments, grid, elements, c10::cuda::getCurrentCUDAStream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
}

struct SoftmaxAttentionKernels {
  template <int D, bool kDistances, typename T>
  void operator()(const cuda::SoftmaxAttentionArguments<T>& arguments,
                  const cuda::BlockIndex& grid) const {
    cuda::Launch<T, D, kDistances>(arguments, grid, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
};

at::Tensor AttendToSlotsOnGpu(const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values, int64_t heads, const LayoutTable& layout) {
  if (!HasOurKernels(queries)) return {};
  return cuda::CallAttendToSlots(queries, keys, values, heads, layout, SoftmaxAttentionKernels());
}

struct LinearAttentionKernels {
  template <typename Kernel, typename T>
  void Start(const cuda::LinearAttentionArguments<T>& arguments,
             const cuda::BlockIndex& grid) const {
    cuda::LaunchLinearAttention<Kernel>(arguments, grid, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  template <int D, typename T>
  void AddParts(const cuda::LinearAttentionArguments<T>& arguments, int64_t elements) const {
    cuda::LaunchAddParts<D>(arguments, elements, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
};

bool LinearAttentionOnGpu(const PackedLinearAttention& call, const at::Tensor& out) {
  return HasOurKernels(out) &&
         cuda::CallLinearAttention(call, out, MultiprocessorsOf(out), LinearAttentionKernels());
}

at::Tensor AttendByLibrary(const PackedSoftmaxAttention& call) {
  const LayoutTable& layout = call.layout;
  const auto heads = [&](const at::Tensor& rows) {
    return rows.unflatten(1, {-1, call.queries.size(1) / call.heads});
  };
  const int64_t longest =
      layout.padded ? layout.positions.size(0) / layout.lengths.size(0) : layout.longest;
  const auto lengths = layout.padded ? std::optional(layout.lengths) : std::nullopt;
  return std::get<0>(at::_flash_attention_forward(
                         heads(call.queries), heads(call.keys), heads(call.values), layout.bounds,
                         layout.bounds, longest, longest, /*dropout_p=*/0.0, call.causal,
                         /*return_debug_mask=*/false, call.scale, call.window,
                         call.causal ? 0 : call.window, lengths))
      .flatten(1);
}

at::Tensor SoftmaxAttentionOnGpu(const PackedSoftmaxAttention& call) {
  if (!HasOurKernels(call.queries)) return {};
  return cuda::CallSoftmaxAttention(call, SoftmaxAttentionKernels(),
                                    [&] { return AttendByLibrary(call); });
}

// These run on GPUs before sm_80, too: they have no use for tensor cores.
bool AddPositionsOnGpu(const at::Tensor& rows, const at::Tensor& table, const at::Tensor& places) {
  return cuda::CallAddPositions(rows, table, places, [](const auto& arguments, int64_t vectors) {
    cuda::LaunchAddPositions(arguments, vectors, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

bool RotateOnGpu(const at::Tensor& rows, int64_t heads, const at::Tensor& table,
                 const at::Tensor& places) {
  return cuda::CallRotate(rows, heads, table, places, [](const auto& arguments, int64_t vectors) {
    cuda::LaunchRotate(arguments, vectors, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

at::Tensor NormOnGpu(const at::Tensor& rows, const RowNorm& norm) {
  return cuda::CallNorm(rows, norm,
                        []<int kReads, typename T>(const cuda::NormRowsArguments<T>& arguments,
                                                   const cuda::BlockIndex& grid) {
                          cuda::LaunchNormRows<T, kReads>(arguments, grid,
                                                          c10::cuda::getCurrentCUDAStream());
                          C10_CUDA_KERNEL_LAUNCH_CHECK();
                        });
}

at::Tensor PoolOnGpu(const at::Tensor& rows, const RowsToPool& which) {
  return cuda::CallPool(rows, which, [](const auto& arguments, const cuda::BlockIndex& grid) {
    cuda::LaunchPoolRows(arguments, grid, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

}  // namespace

DeviceKernels GpuKernels() {
  DeviceKernels kernels;
  kernels.project_length = ProjectLengthOnGpu;
  kernels.attend_to_slots = AttendToSlotsOnGpu;
  kernels.linear_attention = LinearAttentionOnGpu;
  kernels.softmax_attention = SoftmaxAttentionOnGpu;
  kernels.add_positions = AddPositionsOnGpu;
  kernels.rotate = RotateOnGpu;
  kernels.norm = NormOnGpu;
  kernels.pool = PoolOnGpu;
  return kernels;
}

}  // namespace linserve
