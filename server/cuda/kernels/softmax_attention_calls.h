#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/device/device_plugin.h"
#include "cuda/kernels/kernel_calls.h"
#include "cuda/kernels/softmax_attention.h"

namespace linserve::cuda {

// As kernel_calls.h. `run` has an operator()<D, kDistances>(arguments, grid).

template <int D, typename T, typename Run>
void RunSoftmaxAttention(const SoftmaxAttentionArguments<T>& arguments, const BlockIndex& grid,
                         const Run& run) {
  if (arguments.distances != nullptr) {
    run.template operator()<D, true>(arguments, grid);
  } else {
    run.template operator()<D, false>(arguments, grid);
  }
}

template <typename T, typename Run>
void RunOfWidth(const SoftmaxAttentionArguments<T>& arguments, const BlockIndex& grid,
                const Run& run) {
  switch (Tiles(arguments.dim_head, 32)) {
    case 1:
      return RunSoftmaxAttention<32>(arguments, grid, run);
    case 2:
      return RunSoftmaxAttention<64>(arguments, grid, run);
    case 3:
      return RunSoftmaxAttention<96>(arguments, grid, run);
    default:
      return RunSoftmaxAttention<kWidestHead>(arguments, grid, run);
  }
}

// Is what both ways to attend have: queries and result of [rows, heads · dim_head].
template <typename T>
SoftmaxAttentionArguments<T> ArgumentsOf(const at::Tensor& queries, int64_t heads,
                                         const LayoutTable& layout, const at::Tensor& result) {
  using Kernel = SoftmaxAttention<T, 32, true>;
  static_assert(Kernel::kTile == LayoutTable::kTileRows);
  static_assert(Kernel::kTile <= kDistancesBeyond);
  SoftmaxAttentionArguments<T> arguments{};
  arguments.queries = Read<T>(queries);
  arguments.query_stride = queries.stride(0);
  arguments.starts = Read<int32_t>(layout.starts);
  arguments.lengths = Read<int32_t>(layout.lengths);
  arguments.tiles = Read<int32_t>(layout.tiles);
  arguments.result = Write<T>(result);
  arguments.result_stride = result.stride(0);
  arguments.before = arguments.after = kAllRows;
  arguments.heads = static_cast<int>(heads);
  arguments.dim_head = static_cast<int>(queries.size(1) / heads);
  return arguments;
}

// Says whether the kernel takes rows of these types, and heads of this width.
inline bool TakesHeads(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       int64_t heads, const LayoutTable& layout) {
  const at::ScalarType type = queries.scalar_type();
  const int64_t width = queries.size(1) / heads;
  return (type == at::kBFloat16 || type == at::kHalf) && keys.scalar_type() == type &&
         values.scalar_type() == type && width % kVectorNumbers == 0 && width <= kWidestHead &&
         HasWholeVectors(queries) && HasWholeVectors(keys) && HasWholeVectors(values) &&
         layout.tiles.size(0) * heads <= std::numeric_limits<int>::max();
}

// Calls attend(arguments, grid), of the queries' type. Rows of padding are not computed, but must
// be finite.
template <typename Attend>
at::Tensor AttendFrom(const at::Tensor& queries, int64_t heads, const LayoutTable& layout,
                      const Attend& attend) {
  const at::Tensor result = layout.padded ? at::zeros(queries.sizes(), queries.options())
                                          : at::empty(queries.sizes(), queries.options());
  const BlockIndex grid{static_cast<int>(layout.tiles.size(0) * heads), 1, 1};
  if (queries.scalar_type() == at::kHalf) {
    attend(ArgumentsOf<c10::Half>(queries, heads, layout, result), grid);
  } else {
    attend(ArgumentsOf<c10::BFloat16>(queries, heads, layout, result), grid);
  }
  return result;
}

template <typename Run>
at::Tensor CallAttendToSlots(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, int64_t heads, const LayoutTable& layout,
                             const Run& run) {
  if (!TakesHeads(queries, keys, values, heads, layout)) return {};
  return AttendFrom(
      queries, heads, layout,
      [&]<typename T>(SoftmaxAttentionArguments<T> arguments, const BlockIndex& grid) {
        arguments.keys = Read<T>(keys);
        arguments.key_batch_stride = keys.stride(0);
        arguments.key_stride = keys.stride(1);
        arguments.values = Read<T>(values);
        arguments.value_batch_stride = values.stride(0);
        arguments.value_stride = values.stride(1);
        arguments.slots = static_cast<int>(keys.size(1));
        arguments.group = static_cast<int>(queries.size(1) / keys.size(2));
        arguments.scale = 1 / std::sqrt(static_cast<float>(arguments.dim_head));
        RunOfWidth(arguments, grid, run);
      });
}

template <typename Run>
at::Tensor AttendAmongRows(const PackedSoftmaxAttention& call, const Run& run) {
  const LayoutTable& layout = call.layout;
  if (!TakesHeads(call.queries, call.keys, call.values, call.heads, layout)) return {};
  const at::Tensor& distances = call.distances;
  if (distances.defined()) {
    TORCH_CHECK(distances.scalar_type() == at::kFloat && distances.is_contiguous() &&
                    distances.size(0) == call.heads,
                "distances are not F32 of all heads");
    TORCH_CHECK(distances.size(1) / 2 + 1 >= layout.longest + kDistancesBeyond,
                "distances end too soon");
  }
  const auto all = [](int64_t rows) { return static_cast<int>(std::min<int64_t>(rows, kAllRows)); };
  return AttendFrom(
      call.queries, call.heads, layout,
      [&]<typename T>(SoftmaxAttentionArguments<T> arguments, const BlockIndex& grid) {
        arguments.keys = Read<T>(call.keys);
        arguments.key_stride = call.keys.stride(0);
        arguments.values = Read<T>(call.values);
        arguments.value_stride = call.values.stride(0);
        arguments.group = static_cast<int>(call.queries.size(1) / call.keys.size(1));
        arguments.scale = static_cast<float>(call.scale);
        if (call.window >= 0) arguments.before = arguments.after = all(call.window);
        if (call.causal) arguments.after = 0;
        if (distances.defined()) {
          arguments.distances = Read<float>(distances);
          arguments.center = distances.size(1) / 2;
        }
        RunOfWidth(arguments, grid, run);
      });
}

// Says whether LibTorch's kernel for sequences of any lengths takes these arguments. It aligns
// windows to the ends of queries and keys, which differ where rows of padding are queries.
inline bool TakesLibrarysAttention(const PackedSoftmaxAttention& call) {
  const int64_t width = call.queries.size(1) / call.heads;
  const at::ScalarType type = call.queries.scalar_type();
  return (type == at::kHalf || type == at::kBFloat16) && width % kVectorNumbers == 0 &&
         width <= kWidestLibraryHead &&
         ((call.window < 0 && !call.causal) || !call.layout.padded) && !call.distances.defined() &&
         HasAlignedRows(call.queries) && HasAlignedRows(call.keys) && HasAlignedRows(call.values);
}

// Says whether the kernel is slower than LibTorch's where both take the arguments: LibTorch's tiles
// are for long sequences.
inline bool WantsLongTiles(const PackedSoftmaxAttention& call) {
  constexpr int64_t kLong = 512;  // rows of the mean sequence
  return call.window < 0 && call.queries.size(1) / call.heads > 32 &&
         call.layout.positions.size(0) >= kLong * call.layout.lengths.size(0);
}

// As AttendAmongRows(), or with library(), which computes the same by LibTorch's kernel.
template <typename Run, typename Library>
at::Tensor CallSoftmaxAttention(const PackedSoftmaxAttention& call, const Run& run,
                                const Library& library) {
  const bool library_takes = TakesLibrarysAttention(call);
  if (library_takes && WantsLongTiles(call)) return library();
  at::Tensor result = AttendAmongRows(call, run);
  return result.defined() || !library_takes ? result : library();
}

}  // namespace linserve::cuda
