#pragma once

#include <cfloat>
#include <cstdint>

#include "cuda/kernels/lanes.h"

namespace linserve::cuda {

// Makes one vector of the rows of each sequence, of all of them or of those that were chosen: their
// mean, or the largest number of each column. The reference is Pool() of
// models/forward/pass_results.cc.
//
// A block has one sequence and 32 columns, a lane for each. Its warps take rows in turn, and the
// first one puts together what they have, in order, so that results are the same each time. It is
// bound by memory: it reads each row once.

template <typename T>
struct PoolRowsArguments {
  const T* rows;
  int64_t row_stride;
  int width;
  const int32_t* starts;  // of each sequence
  const int32_t* counts;  // at least 1
  const int32_t* chosen;  // rows, of which starts are places; null: all rows
  bool largest;
  float* result;  // [sequences, width]
};

template <typename T>
class PoolRows {
 public:
  static constexpr int kWarps = 16;
  static constexpr int kFloats = kWarps * kLanes;  // of shared memory

  // Runs the block `at`: x counts sequences, y tiles of 32 columns.
  LINSERVE_KERNEL static void Run(const PoolRowsArguments<T>& arguments, const BlockIndex& at,
                                  float* shared) {
    const int column = at.y * kLanes;
    const int count = arguments.counts[at.x];
    ForWarps<kWarps>([&](int warp) {
      ForLanes([&](int lane) {
        shared[warp * kLanes + lane] =
            column + lane < arguments.width
                ? OfWarp(arguments, arguments.starts[at.x], count, column + lane, warp)
                : 0;
      });
    });
    ForWarps<kWarps>([&](int warp) {
      if (warp > 0) return;
      ForLanes([&](int lane) {
        if (column + lane >= arguments.width) return;
        float all = shared[lane];
        for (int other = 1; other < kWarps && other < count; ++other) {
          all = Together(arguments.largest, all, shared[other * kLanes + lane]);
        }
        arguments.result[static_cast<int64_t>(at.x) * arguments.width + column + lane] =
            arguments.largest ? all : all / static_cast<float>(count);
      });
    });
  }

 private:
  // Puts together a column of every kWarps-th row.
  LINSERVE_KERNEL static float OfWarp(const PoolRowsArguments<T>& arguments, int start, int count,
                                      int column, int warp) {
    constexpr int kAtOnce = 4;  // loads under way
    const auto at = [&](int row) {
      const int64_t place = start + row;
      const int64_t own = arguments.chosen != nullptr ? arguments.chosen[place] : place;
      return static_cast<float>(arguments.rows[own * arguments.row_stride + column]);
    };
    if (warp >= count) return 0;
    float all = at(warp);
    int row = warp + kWarps;
    for (; row + (kAtOnce - 1) * kWarps < count; row += kAtOnce * kWarps) {
      float some[kAtOnce];
      LINSERVE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) some[i] = at(row + i * kWarps);
      LINSERVE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) all = Together(arguments.largest, all, some[i]);
    }
    for (; row < count; row += kWarps) all = Together(arguments.largest, all, at(row));
    return all;
  }

  // Whatever has a NaN becomes one.
  LINSERVE_KERNEL static float Together(bool largest, float a, float b) {
    if (!largest) return a + b;
    return a > b || a != a ? a : b;
  }
};

}  // namespace linserve::cuda
