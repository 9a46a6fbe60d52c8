#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "attention/device/device_plugin.h"
#include "cuda/kernels/kernel_calls.h"
#include "cuda/kernels/norm_rows.h"
#include "cuda/kernels/pool_rows.h"
#include "cuda/kernels/positions.h"

namespace linserve::cuda {

// These functions call the kernels of positions.h, norm_rows.h and pool_rows.h with tensors, as
// kernel_calls.h does it for others.

template <typename T, typename U>
PositionArguments<T, U> PositionArgumentsOf(const at::Tensor& rows, const at::Tensor& table,
                                            const at::Tensor& places) {
  PositionArguments<T, U> arguments{};
  arguments.rows = Write<T>(rows);
  arguments.row_stride = rows.stride(0);
  arguments.table = Read<U>(table);
  arguments.table_stride = table.stride(0);
  arguments.places = Read<int32_t>(places);
  arguments.vectors = static_cast<int>(rows.size(1) / arguments.kVector);
  return arguments;
}

// Calls run(arguments, vectors), which adds the table to the rows or turns them by it. False: the
// kernels do not take these.
template <typename Run>
bool CallWithPositions(const at::Tensor& rows, const at::Tensor& table, const at::Tensor& places,
                       const Run& run) {
  const at::ScalarType type = rows.scalar_type();
  const at::ScalarType of_table = table.scalar_type();
  if (places.scalar_type() != at::kInt || !places.is_contiguous()) return false;
  if (places.size(0) != rows.size(0)) return false;
  if (!HasWholeVectors(rows) || !HasWholeVectors(table)) return false;
  const auto call = [&]<typename T, typename U>() {
    run(PositionArgumentsOf<T, U>(rows, table, places), rows.numel() / 8);
    return true;
  };
  if (type == at::kFloat && of_table == at::kFloat) return call.template operator()<float, float>();
  if (type == at::kBFloat16) {
    if (of_table == at::kFloat) return call.template operator()<c10::BFloat16, float>();
    if (of_table == type) return call.template operator()<c10::BFloat16, c10::BFloat16>();
  }
  if (type == at::kHalf) {
    if (of_table == at::kFloat) return call.template operator()<c10::Half, float>();
    if (of_table == type) return call.template operator()<c10::Half, c10::Half>();
  }
  return false;
}

template <typename Run>
bool CallAddPositions(const at::Tensor& rows, const at::Tensor& table, const at::Tensor& places,
                      const Run& run) {
  return table.size(1) == rows.size(1) && CallWithPositions(rows, table, places, run);
}

template <typename Run>
bool CallRotate(const at::Tensor& rows, int64_t heads, const at::Tensor& table,
                const at::Tensor& places, const Run& run) {
  const int64_t dim_head = rows.size(1) / heads;
  if (dim_head % 8 != 0 || table.size(1) != dim_head) return false;
  return CallWithPositions(rows, table, places, [&](auto arguments, int64_t vectors) {
    arguments.dim_head = static_cast<int>(dim_head);
    run(arguments, vectors);
  });
}

// Returns call.template operator()<T>() for the rows' type T; an undefined tensor for any other
// type.
template <typename Call>
at::Tensor WithTypeOf(const at::Tensor& rows, const Call& call) {
  switch (rows.scalar_type()) {
    case at::kFloat:
      return call.template operator()<float>();
    case at::kBFloat16:
      return call.template operator()<c10::BFloat16>();
    case at::kHalf:
      return call.template operator()<c10::Half>();
    default:
      return {};
  }
}

template <typename T, typename Run>
at::Tensor NormAs(const at::Tensor& rows, const RowNorm& norm, const Run& run) {
  const at::Tensor result = at::empty(rows.sizes(), rows.options());
  const auto read = [](const at::Tensor& tensor) {
    return tensor.defined() ? Read<T>(tensor) : nullptr;
  };
  const NormRowsArguments<T> arguments{Read<T>(rows),
                                       rows.stride(0),
                                       read(norm.lacking),
                                       read(norm.weight),
                                       read(norm.bias),
                                       Write<T>(result),
                                       rows.size(0),
                                       static_cast<int>(rows.size(1)),
                                       1 / static_cast<float>(rows.size(1)),
                                       static_cast<float>(norm.epsilon)};
  const auto start = [&]<int kReads>() {
    using Kernel = NormRows<T, kReads>;
    if (rows.size(1) > Kernel::kMostWidth) return false;
    run.template operator()<kReads>(
        arguments, BlockIndex{static_cast<int>(Tiles(rows.size(0), Kernel::kWarps)), 1, 1});
    return true;
  };
  const bool taken = start.template operator()<1>() || start.template operator()<2>() ||
                     start.template operator()<4>();
  return taken ? result : at::Tensor();
}

// Calls run.template operator()<kReads>(arguments, grid). An undefined tensor says that the kernel
// does not take these rows.
template <typename Run>
at::Tensor CallNorm(const at::Tensor& rows, const RowNorm& norm, const Run& run) {
  if (rows.dim() != 2 || rows.size(0) == 0 || !HasWholeVectors(rows)) return {};
  for (const at::Tensor& vector : {norm.lacking, norm.weight, norm.bias}) {
    if (!vector.defined()) continue;
    if (vector.scalar_type() != rows.scalar_type() || !HasWholeVectors(vector)) return {};
  }
  return WithTypeOf(rows, [&]<typename T>() { return NormAs<T>(rows, norm, run); });
}

template <typename T, typename Run>
at::Tensor PoolAs(const at::Tensor& rows, const RowsToPool& which, const Run& run) {
  const int64_t vectors = which.starts.size(0);
  at::Tensor result = at::empty({vectors, rows.size(1)}, rows.options().dtype(at::kFloat));
  run(PoolRowsArguments<T>{Read<T>(rows), rows.stride(0), static_cast<int>(rows.size(1)),
                           Read<int32_t>(which.starts), Read<int32_t>(which.counts),
                           which.chosen.defined() ? Read<int32_t>(which.chosen) : nullptr,
                           which.largest, Write<float>(result)},
      BlockIndex{static_cast<int>(vectors), static_cast<int>(Tiles(rows.size(1), kLanes)), 0});
  return result;
}

// Calls run(arguments, grid). An undefined tensor says that the kernel does not take these rows.
template <typename Run>
at::Tensor CallPool(const at::Tensor& rows, const RowsToPool& which, const Run& run) {
  if (rows.dim() != 2 || rows.stride(1) != 1 || rows.size(1) > kMostBlocksInZ * kLanes) return {};
  return WithTypeOf(rows, [&]<typename T>() { return PoolAs<T>(rows, which, run); });
}

}  // namespace linserve::cuda
