#pragma once

#include <cstdint>

#include "cuda/kernels/matrix_ops.h"
#include "cuda/kernels/pairs.h"
#include "cuda/kernels/vectors.h"

namespace linserve::cuda {

// These functions fill tiles of rows, often 64 (Tile<kWidth> of matrix_ops.h), and load from them
// what the tensor cores take. `row` and `column` are multiples of 16.

inline constexpr int kTileRows = 64;

// Copies a warp's share of kRows rows of kWidth numbers; rows past the first `count` are zeros, and
// so are numbers past the first `columns`, a multiple of 8.
template <int kWidth, int kWarps, int kRows = kTileRows, typename T>
LINSERVE_KERNEL void CopyRows(T* tile, const T* rows, int64_t stride, int count, int warp,
                              int columns = kWidth) {
  using Layout = Tile<kWidth>;
  constexpr int kThreads = kWarps * kLanes;
  ForLanes([&](int lane) {
    const int thread = warp * kLanes + lane;
    if constexpr (kThreads % (8 * Layout::kVectors) == 0) {
      // A thread has one column of vectors, whose places differ by whole rows.
      constexpr int kStep = kThreads / Layout::kVectors;
      const int row = thread / Layout::kVectors;
      const int vector = thread % Layout::kVectors;
      const int left = vector * Layout::kVector < columns ? count - row : 0;
      T* to = tile + Layout::Offset(row, vector);
      const T* from = rows + row * stride + vector * Layout::kVector;
      LINSERVE_UNROLL
      for (int below = 0; below < kRows; below += kStep) {
        CopyVector(to + below * kWidth, from, below < left);
        from += kStep * stride;
      }
    } else {
      for (int i = thread; i < kRows * Layout::kVectors; i += kThreads) {
        const int row = i / Layout::kVectors;
        const int vector = i % Layout::kVectors;
        CopyVector(tile + Layout::Offset(row, vector),
                   rows + row * stride + vector * Layout::kVector,
                   row < count && vector * Layout::kVector < columns);
      }
    }
  });
}

// Loads the tile's part [row, + 16) x [column, + 16). With `kDown` its four matrices come in the
// order of rows.
template <int kWidth, bool kDown, bool kTransposed, typename T>
LINSERVE_KERNEL void LoadPart(const T* tile, int row, int column, PerLane<FragmentA>& part) {
  PerLane<const T*> rows;
  ForLanes([&](int lane) {
    const int matrix = lane / 8;
    const int down = kDown ? matrix % 2 : matrix / 2;
    const int right = kDown ? matrix / 2 : matrix % 2;
    // Rows that are 8 apart have the same order of vectors.
    rows[lane] =
        tile + (row + down * 8) * kWidth + Tile<kWidth>::Offset(lane % 8, column / 8 + right);
  });
  LoadMatrices<kTransposed>(rows, part);
}

// Loads the tile as A, or its transpose as A.
template <int kWidth, typename T>
LINSERVE_KERNEL void LoadA(const T* tile, int row, int column, PerLane<FragmentA>& a) {
  LoadPart<kWidth, true, false>(tile, row, column, a);
}
template <int kWidth, typename T>
LINSERVE_KERNEL void LoadTransposedA(const T* tile, int row, int column, PerLane<FragmentA>& a) {
  LoadPart<kWidth, false, true>(tile, row, column, a);
}

LINSERVE_KERNEL void Split(const PerLane<FragmentA>& both, PerLane<FragmentB> (&b)[2]) {
  ForLanes([&](int lane) {
    for (int i = 0; i < 4; ++i) b[i / 2][lane].registers[i % 2] = both[lane].registers[i];
  });
}

// Loads the tile as B, 16 deep, two fragments of 8 columns; or its transpose as B, whose columns
// are the tile's rows.
template <int kWidth, typename T>
LINSERVE_KERNEL void LoadB(const T* tile, int row, int column, PerLane<FragmentB> (&b)[2]) {
  PerLane<FragmentA> both;
  LoadPart<kWidth, true, true>(tile, row, column, both);
  Split(both, b);
}
template <int kWidth, typename T>
LINSERVE_KERNEL void LoadTransposedB(const T* tile, int row, int column,
                                     PerLane<FragmentB> (&b)[2]) {
  PerLane<FragmentA> both;
  LoadPart<kWidth, false, false>(tile, row, column, both);
  Split(both, b);
}

// Writes 16 rows of a warp's sums, kWidth / 8 tiles side by side, as rows of T to global memory:
// those of the first `count` rows and `columns` columns, a multiple of 8. number(lane, half, sum)
// is what a sum of one of a lane's two rows becomes. They go through the warp's own scratch of 16 ·
// kWidth numbers in shared memory, so that rows are stored in vectors of 16 bytes.
template <int kWidth, typename T, typename Number>
LINSERVE_KERNEL void StoreSums(const PerLane<Sums>* tiles, T* scratch, T* rows, int64_t stride,
                               int count, int columns, const Number& number) {
  using Layout = Tile<kWidth>;
  SyncLanes();  // none reads any more what the scratch held before
  ForLanes([&](int lane) {
    LINSERVE_UNROLL
    for (int tile = 0; tile < kWidth / 8; ++tile) {
      LINSERVE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float* sums = tiles[tile][lane].values + 2 * half;
        StorePair(scratch + Layout::Offset(SumRow(lane, 0), tile) + 8 * half * kWidth +
                      SumColumn(lane, 0),
                  number(lane, half, sums[0]), number(lane, half, sums[1]));
      }
    }
  });
  SyncLanes();
  ForLanes([&](int lane) {
    LINSERVE_UNROLL
    for (int i = 0; i < 16 * Layout::kVectors / kLanes; ++i) {
      const int row = (i * kLanes + lane) / Layout::kVectors;
      const int vector = (i * kLanes + lane) % Layout::kVectors;
      if (row >= count || vector * Layout::kVector >= columns) continue;
      StoreVector(rows + row * stride + vector * Layout::kVector,
                  LoadVector<Layout::kVector>(scratch + Layout::Offset(row, vector)));
    }
  });
}

}  // namespace linserve::cuda
