#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

#include "attention/device/device_plugin.h"
#include "cuda/kernels/project_length.h"

namespace linserve::cuda {

// These functions make a kernel's arguments and grid of tensors. `run` then starts the kernel, or
// on the CPU goes through its blocks. A tensor that is undefined says that the kernel does not take
// these arguments.

constexpr int64_t kMostBlocksInZ = 65535;

// Says whether rows begin where vectors of 16 bytes do.
inline bool HasAlignedRows(const at::Tensor& tensor) {
  for (int64_t axis = 0; axis + 1 < tensor.dim(); ++axis) {
    if (tensor.stride(axis) % kVectorNumbers != 0 && tensor.size(axis) > 1) return false;
  }
  return tensor.stride(-1) == 1 && reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

// Says whether rows can be read in vectors of 16 bytes, and are no longer than those.
inline bool HasWholeVectors(const at::Tensor& tensor) {
  return HasAlignedRows(tensor) && tensor.size(-1) % kVectorNumbers == 0;
}

template <typename T>
const T* Read(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <typename T>
T* Write(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

constexpr int64_t Tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

// Returns into how many parts the longest sequence is cut: where there are few blocks, so many that
// all that fit are computed at once.
inline int64_t PartsOf(int64_t longest, int64_t blocks, int64_t places) {
  constexpr int64_t kFewestRows = 512;
  const int64_t wanted = std::max<int64_t>(1, places / std::max<int64_t>(1, blocks));
  const int64_t most = std::max<int64_t>(1, longest / kFewestRows);
  return std::min(wanted, most);
}

template <typename T, typename Run>
at::Tensor ProjectLengthAs(const at::Tensor& rows, const at::Tensor& projection,
                           const LayoutTable& layout, int64_t multiprocessors, const Run& run) {
  using Kernel = ProjectLength<T>;
  const int64_t batch = layout.lengths.size(0);
  ProjectLengthSizes sizes;
  sizes.slots = static_cast<int>(projection.size(1));
  sizes.width = static_cast<int>(rows.size(1));
  BlockIndex grid{static_cast<int>(Tiles(sizes.width, Kernel::kTileWidth)),
                  static_cast<int>(Tiles(sizes.slots, Kernel::kTileSlots)), 0};
  const int64_t wanted =
      PartsOf(layout.longest, batch * grid.x * grid.y, Kernel::kBlocks * multiprocessors);
  const int64_t rows_each = Tiles(layout.longest, wanted);
  sizes.part_rows = static_cast<int>(Tiles(rows_each, Kernel::kDepth) * Kernel::kDepth);
  sizes.parts = static_cast<int>(Tiles(layout.longest, sizes.part_rows));
  if (batch * sizes.parts > kMostBlocksInZ) return {};
  grid.z = static_cast<int>(batch * sizes.parts);

  at::Tensor result = at::empty({batch, sizes.slots, sizes.width}, rows.options());
  at::Tensor shares;
  if (sizes.parts > 1) {
    shares =
        at::empty({batch, sizes.parts, sizes.slots, sizes.width}, rows.options().dtype(at::kFloat));
  }
  run(ProjectLengthArguments<T>{Read<T>(rows), rows.stride(0), Read<T>(projection),
                                projection.stride(0), Read<int32_t>(layout.starts),
                                Read<int32_t>(layout.lengths), Write<T>(result),
                                shares.defined() ? Write<float>(shares) : nullptr, sizes},
      grid, result.numel());
  return result;
}

// Calls run(arguments, grid, elements of the result), which starts the kernel, if it takes these
// tensors.
template <typename Run>
at::Tensor CallProjectLength(const at::Tensor& rows, const at::Tensor& projection,
                             const LayoutTable& layout, int64_t multiprocessors, const Run& run) {
  if (rows.scalar_type() != projection.scalar_type()) return {};
  // The projection's last vector may go past its slots, within the distance from row to row.
  const bool within =
      projection.stride(0) >= Tiles(projection.size(1), kVectorNumbers) * kVectorNumbers;
  if (!HasWholeVectors(rows) || !HasAlignedRows(projection) || !within) return {};
  if (rows.scalar_type() == at::kBFloat16) {
    return ProjectLengthAs<c10::BFloat16>(rows, projection, layout, multiprocessors, run);
  }
  if (rows.scalar_type() == at::kHalf) {
    return ProjectLengthAs<c10::Half>(rows, projection, layout, multiprocessors, run);
  }
  return {};
}

}  // namespace linserve::cuda
