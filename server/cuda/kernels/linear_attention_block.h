#pragma once

#include <cstdint>

#include "cuda/kernels/linear_attention.h"
#include "cuda/kernels/tile_rows.h"

namespace linserve::cuda {

// Is a block's shared memory: as many tiles and numbers as its kernel says.
template <typename T>
struct SharedMemory {
  T* tiles;
  float* floats;
};

// Is what a block of linear attention's kernels works on: one sequence and head, and E columns of
// its values. In `at`, x counts parts or tiles of queries, y heads and the columns of each, z
// sequences.
template <typename T, int D>
class LinearAttentionBlock {
 public:
  static constexpr int kWarps = 4;
  static constexpr int kSplits = (D + 63) / 64;
  static constexpr int E = D / kSplits;
  static constexpr int kTileElements = kTileRows * D;  // of queries or keys
  static constexpr int kValueElements = kTileRows * E;
  static constexpr int kMeanElements = D * E;

  LINSERVE_KERNEL LinearAttentionBlock(const LinearAttentionArguments<T>& arguments,
                                       const BlockIndex& at)
      : arguments_(arguments),
        sequence_(at.z),
        head_(at.y / kSplits),
        first_column_(at.y % kSplits * E),
        start_(arguments.starts[at.z]),
        key_start_(arguments.key_starts[at.z]) {}

  LINSERVE_KERNEL int queries() const { return arguments_.lengths[sequence_]; }
  LINSERVE_KERNEL int keys() const { return arguments_.key_lengths[sequence_]; }
  LINSERVE_KERNEL bool Counts(int key) const {
    return arguments_.visible == nullptr || arguments_.visible[key_start_ + key];
  }

  // These copy a warp's share of the rows [row, end) of the sequence, at most 64, and zeros for the
  // rest.
  LINSERVE_KERNEL void CopyQueries(T* tile, int row, int end, int warp) const {
    Copy<D>(tile, arguments_.queries + head_ * D, arguments_.query_stride, start_, row, end, warp);
  }
  LINSERVE_KERNEL void CopyKeys(T* tile, int row, int end, int warp) const {
    Copy<D>(tile, arguments_.keys + head_ * D, arguments_.key_stride, key_start_, row, end, warp);
  }
  LINSERVE_KERNEL void CopyValues(T* tile, int row, int end, int warp) const {
    Copy<E>(tile, arguments_.values + head_ * D + first_column_, arguments_.value_stride,
            key_start_, row, end, warp);
  }

  LINSERVE_KERNEL T* Result(int row) const {
    return arguments_.result + (start_ + row) * arguments_.result_stride + head_ * D +
           first_column_;
  }

  // Logs() and Means() find a part's logarithms [D], and its means [D, D] from the block's first
  // column on.
  LINSERVE_KERNEL float* Logs(float* logs, int part, int parts) const {
    return logs + StateRow(part, parts);
  }
  LINSERVE_KERNEL float* Means(float* means, int part, int parts) const {
    return means + StateRow(part, parts) * D + first_column_;
  }

 private:
  LINSERVE_KERNEL int64_t StateRow(int part, int parts) const {
    const int64_t head = static_cast<int64_t>(sequence_) * arguments_.heads + head_;
    return (head * parts + part) * D;
  }

  template <int kWidth>
  LINSERVE_KERNEL static void Copy(T* tile, const T* rows, int64_t stride, int64_t start, int row,
                                   int end, int warp) {
    const int count = end - row;  // may be none
    CopyRows<kWidth, kWarps>(tile, rows + (start + (count > 0 ? row : 0)) * stride, stride, count,
                             warp);
  }

  const LinearAttentionArguments<T>& arguments_;
  int sequence_;
  int head_;
  int first_column_;
  int64_t start_;  // of the queries
  int64_t key_start_;
};

}  // namespace linserve::cuda
