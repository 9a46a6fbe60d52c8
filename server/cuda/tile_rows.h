#pragma once

#include <cstdint>

#include "cuda/matrix_ops.h"

namespace linserve::cuda {

// These functions fill tiles of 64 rows (Tile<kWidth> of matrix_ops.h), and load from them what the
// tensor cores take. `row` and `column` are multiples of 16.

inline constexpr int kTileRows = 64;

// Copies a warp's share of 64 rows of kWidth numbers; those past the first `count` are zeros.
template <int kWidth, int kWarps, typename T>
LINSERVE_KERNEL void CopyRows(T* tile, const T* rows, int64_t stride, int count, int warp) {
  using Layout = Tile<kWidth>;
  constexpr int kVectors = kTileRows * Layout::kVectors;
  ForLanes([&](int lane) {
    for (int i = warp * kLanes + lane; i < kVectors; i += kWarps * kLanes) {
      const int row = i / Layout::kVectors;
      const int vector = i % Layout::kVectors;
      const bool real = row < count;
      CopyVector(tile + Layout::Offset(row, vector),
                 rows + (real ? row * stride + vector * Layout::kVector : 0), real);
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
    rows[lane] = tile + Tile<kWidth>::Offset(row + down * 8 + lane % 8, column / 8 + right);
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

}  // namespace linserve::cuda
