#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/kernels/lanes.h"
#include "cuda/kernels/pairs.h"

namespace linserve::cuda {

// These functions say what a warp does with its tensor cores (mma.m16n8k16) and how it feeds them.
// T is c10::BFloat16 or c10::Half; sums are F32. The layouts of fragments are in the PTX ISA,
// "Matrix fragments for mma.m16n8k16".

// A register holds two numbers of 16 bits. A is [16 rows, 16 deep], B [16 deep, 8 columns], the
// sums [16 rows, 8 columns].
struct FragmentA {
  uint32_t registers[4];
};
struct FragmentB {
  uint32_t registers[2];
};
struct Sums {
  float values[4];
};

// Element `index` of a lane's part of the sums lies in this row and column.
LINSERVE_KERNEL constexpr int SumRow(int lane, int index) { return lane / 4 + index / 2 * 8; }
LINSERVE_KERNEL constexpr int SumColumn(int lane, int index) { return lane % 4 * 2 + index % 2; }

// Lays out a tile of rows of kWidth numbers in shared memory, in vectors of 8 (16 bytes). Vectors
// change places within their row so that the 8 rows that ldmatrix reads at once lie in different
// banks.
template <int kWidth>
struct Tile {
  static constexpr int kVector = 8;
  static constexpr int kVectors = kWidth / kVector;
  static_assert(kVectors % 4 == 0, "rows are multiples of 64 bytes");

  // Returns the place of a vector, in numbers from the tile's first.
  LINSERVE_KERNEL static constexpr int Offset(int row, int vector) {
    const int place = kVectors % 8 == 0 ? vector ^ (row & 7) : vector ^ (row >> 1 & 3);
    return row * kWidth + place * kVector;
  }
};

// Copies 16 bytes from global to shared memory, or zeros, for which nothing is read: the address
// may be any. Others see them after WaitForCopies() and the phase's end.
template <typename T>
LINSERVE_KERNEL void CopyVector(T* shared, const T* global, bool valid) {
#if defined(__CUDACC__)
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(bytes));
#endif
#else
  if (valid) {
    std::memcpy(shared, global, 16);
  } else {
    std::memset(shared, 0, 16);
  }
#endif
}

// Makes the copies since the last call one group.
LINSERVE_KERNEL void CommitCopies() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}

// Waits until at most so many groups are under way.
template <int kGroups>
LINSERVE_KERNEL void WaitForCopies() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups));
#endif
}

// Loads four matrices of 8 x 8 numbers from shared memory: lanes 8i to 8i + 7 give the addresses of
// the rows of matrix i. Lane l gets numbers (l / 4, l % 4 * 2 + {0, 1}) of each, or with
// kTransposed those of its transpose.
template <bool kTransposed, typename T>
LINSERVE_KERNEL void LoadMatrices(const PerLane<const T*>& rows, PerLane<FragmentA>& result) {
#if defined(__CUDACC__)
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(rows[0]));
  uint32_t* to = result[0].registers;
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
  }
#endif
#else
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      T pair[2];
      for (int i = 0; i < 2; ++i) {
        const int row = kTransposed ? lane % 4 * 2 + i : lane / 4;
        const int column = kTransposed ? lane / 4 : lane % 4 * 2 + i;
        pair[i] = rows[static_cast<size_t>(matrix * 8 + row)][column];
      }
      std::memcpy(&result[static_cast<size_t>(lane)].registers[matrix], pair, sizeof(pair));
    }
  }
#endif
}

// Adds a · b to the sums.
template <typename T>
LINSERVE_KERNEL void MultiplyAdd(const PerLane<FragmentA>& a, const PerLane<FragmentB>& b,
                                 PerLane<Sums>& sums) {
#if defined(__CUDACC__)
#if __CUDA_ARCH__ >= 800
  const uint32_t* x = a[0].registers;
  const uint32_t* y = b[0].registers;
  float* c = sums[0].values;
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
#endif
#else
  float left[16][16];
  float right[16][8];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const auto group = lane / 4;
    for (size_t i = 0; i < 4; ++i) {
      T pair[2];
      std::memcpy(pair, &a[lane].registers[i], sizeof(pair));
      for (size_t j = 0; j < 2; ++j)
        left[group + i % 2 * 8][lane % 4 * 2 + i / 2 * 8 + j] = pair[j];
    }
    for (size_t i = 0; i < 2; ++i) {
      T pair[2];
      std::memcpy(pair, &b[lane].registers[i], sizeof(pair));
      for (size_t j = 0; j < 2; ++j) right[lane % 4 * 2 + i * 8 + j][group] = pair[j];
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      float& sum = sums[static_cast<size_t>(lane)].values[i];
      for (int k = 0; k < 16; ++k) sum += left[SumRow(lane, i)][k] * right[k][SumColumn(lane, i)];
    }
  }
#endif
}

// Is a B whose columns are all ones: a · b has the sums of a's rows in all columns.
template <typename T>
LINSERVE_KERNEL PerLane<FragmentB> Ones() {
  PerLane<FragmentB> ones;
  ForLanes([&](int lane) { ones[lane] = {{kPairOfOnes<T>, kPairOfOnes<T>}}; });
  return ones;
}

// Gives every lane combine() over the 4 lanes that share its rows of the sums.
template <typename Combine>
LINSERVE_KERNEL void OverRow(PerLane<float>& values, const Combine& combine) {
  OverLanes<1, 4>(values, combine);
}

}  // namespace linserve::cuda
