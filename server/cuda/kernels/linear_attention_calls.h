#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

#include "attention/device/device_plugin.h"
#include "cuda/kernels/causal_linear_attention.h"
#include "cuda/kernels/kernel_calls.h"
#include "cuda/kernels/whole_linear_attention.h"

namespace linserve::cuda {

// These functions call the kernels of linear_attention.h with tensors, as kernel_calls.h does it
// for others. They return false if the kernels do not take these arguments. `run` has
//   run.template Start<Kernel>(arguments, grid)
//   run.template AddParts<D>(arguments, elements)

template <typename T>
LinearAttentionArguments<T> ArgumentsOf(const PackedLinearAttention& call, const at::Tensor& out) {
  LinearAttentionArguments<T> arguments{};
  arguments.queries = Read<T>(call.queries);
  arguments.query_stride = call.queries.stride(0);
  arguments.keys = Read<T>(call.keys);
  arguments.key_stride = call.keys.stride(0);
  arguments.values = Read<T>(call.values);
  arguments.value_stride = call.values.stride(0);
  arguments.visible = call.mask.defined() ? Read<bool>(call.mask) : nullptr;
  arguments.starts = Read<int32_t>(call.layout.starts);
  arguments.lengths = Read<int32_t>(call.layout.lengths);
  arguments.key_starts = Read<int32_t>(call.key_layout.starts);
  arguments.key_lengths = Read<int32_t>(call.key_layout.lengths);
  arguments.result = Write<T>(out);
  arguments.result_stride = out.stride(0);
  arguments.heads = static_cast<int>(call.heads);
  arguments.causal = call.causal;
  arguments.bucket = static_cast<int>(call.bucket);
  arguments.divided = call.floor.has_value();
  arguments.floor = static_cast<float>(call.floor.value_or(0));
  return arguments;
}

template <typename T, int D, FeatureMap kMap, typename Run>
bool LinearAttentionOf(const PackedLinearAttention& call, const at::Tensor& out,
                       int64_t multiprocessors, const Run& run) {
  using Block = LinearAttentionBlock<T, D>;
  const int64_t batch = call.layout.lengths.size(0);
  const int64_t columns = call.heads * Block::kSplits;
  const int64_t longest = call.key_layout.longest;
  if (columns > kMostBlocksInZ) return false;
  LinearAttentionArguments<T> arguments = ArgumentsOf<T>(call, out);
  constexpr int kBlocks = CausalLinearAttention<T, D, kMap>::kBlocks;
  const auto rows_of_part = [&](int64_t of) {
    const int64_t wanted = PartsOf(of, batch * columns, kBlocks * multiprocessors);
    return static_cast<int>(Tiles(Tiles(of, wanted), kTileRows) * kTileRows);
  };
  arguments.part_rows = rows_of_part(longest);
  arguments.query_rows = rows_of_part(call.layout.longest);
  const int64_t parts = std::max<int64_t>(1, Tiles(longest, arguments.part_rows));
  arguments.parts = static_cast<int>(parts);

  BlockIndex grid{arguments.parts, static_cast<int>(columns), static_cast<int>(batch)};
  at::Tensor sums;
  at::Tensor before;
  if (parts > 1) {
    // A state has logarithms [D] and means [D, D].
    const auto states = [&](int64_t count) {
      return at::empty({batch * call.heads * count * D * (D + 1)},
                       call.keys.options().dtype(at::kFloat));
    };
    sums = states(parts);
    arguments.logs = Write<float>(sums);
    arguments.means = arguments.logs + batch * call.heads * parts * D;
    run.template Start<SumKeys<T, D, kMap>>(arguments, grid);
    const int64_t count = call.causal ? parts : 1;
    before = states(count);
    arguments.logs_before = Write<float>(before);
    arguments.means_before = arguments.logs_before + batch * call.heads * count * D;
    run.template AddParts<D>(arguments, batch * call.heads * D * D);
  }
  if (call.causal) {
    run.template Start<CausalLinearAttention<T, D, kMap>>(arguments, grid);
  } else if (parts == 1) {
    run.template Start<WholeLinearAttention<T, D, kMap>>(arguments, grid);
  } else {
    grid.x = static_cast<int>(Tiles(call.layout.longest, arguments.query_rows));
    run.template Start<AttendToKeys<T, D, kMap>>(arguments, grid);
  }
  return true;
}

template <typename T, FeatureMap kMap, typename Run>
bool LinearAttentionAs(const PackedLinearAttention& call, const at::Tensor& out,
                       int64_t multiprocessors, const Run& run) {
  switch (call.queries.size(1) / call.heads) {
    case 32:
      return LinearAttentionOf<T, 32, kMap>(call, out, multiprocessors, run);
    case 64:
      return LinearAttentionOf<T, 64, kMap>(call, out, multiprocessors, run);
    case 128:
      return LinearAttentionOf<T, 128, kMap>(call, out, multiprocessors, run);
    default:
      return false;
  }
}

template <typename Run>
bool CallLinearAttention(const PackedLinearAttention& call, const at::Tensor& out,
                         int64_t multiprocessors, const Run& run) {
  const at::ScalarType type = call.queries.scalar_type();
  for (const at::Tensor& rows : {call.queries, call.keys, call.values, out}) {
    if (rows.scalar_type() != type || !HasWholeVectors(rows)) return false;
  }
  if (call.mask.defined() && !call.mask.is_contiguous()) return false;
  if (call.causal && kTileRows % call.bucket != 0) return false;
  if (call.layout.lengths.size(0) > kMostBlocksInZ) return false;
  const auto as = [&]<typename T>(T) {
    if (call.elu) {
      return LinearAttentionAs<T, FeatureMap::kElu>(call, out, multiprocessors, run);
    }
    return LinearAttentionAs<T, FeatureMap::kExp>(call, out, multiprocessors, run);
  };
  if (type == at::kBFloat16) return as(c10::BFloat16());
  return type == at::kHalf && as(c10::Half());
}

}  // namespace linserve::cuda
