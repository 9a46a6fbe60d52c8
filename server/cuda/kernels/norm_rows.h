#pragma once

#include <cstdint>

#include "cuda/kernels/vectors.h"

namespace linserve::cuda {

// Normalises rows over their width (torch.nn.LayerNorm), after something that all of them lack was
// added: what a row is normalised of is never written. The reference is LayerNorm of
// models/network/layers.h.
//
// A warp has a row, which stays in its registers. It is bound by memory: it reads and writes each
// row once.

template <typename T>
struct NormRowsArguments {
  const T* rows;  // all rows begin at multiples of 16 bytes
  int64_t row_stride;
  const T* lacking;  // [width]; null: nothing
  const T* weight;   // [width]
  const T* bias;     // null: none
  T* result;         // [count, width]
  int64_t count;
  int width;    // a multiple of 8
  float share;  // 1 / width
  float epsilon;
};

// kReads is how many vectors a lane has at the most.
template <typename T, int kReads>
class NormRows {
 public:
  static constexpr int kWarps = 8;
  static constexpr int kVector = 8;
  static constexpr int kMostWidth = kReads * kLanes * kVector;

  // Runs the block `at`: x counts kWarps rows.
  LINSERVE_KERNEL static void Run(const NormRowsArguments<T>& arguments, const BlockIndex& at) {
    ForWarps<kWarps>([&](int warp) {
      const int64_t row = static_cast<int64_t>(at.x) * kWarps + warp;
      if (row < arguments.count) NormRow(arguments, row);
    });
  }

 private:
  using Numbers = Vector<float, kVector>;

  // Calls function(lane, read, column) for the vectors of a row that there are.
  template <typename Function>
  LINSERVE_KERNEL static void ForVectors(const NormRowsArguments<T>& arguments,
                                         const Function& function) {
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int read = 0; read < kReads; ++read) {
        const int column = (read * kLanes + lane) * kVector;
        if (column < arguments.width) function(lane, read, column);
      }
    });
  }

  LINSERVE_KERNEL static Numbers Load(const T* from) {
    const auto vector = LoadVector<kVector>(from);
    Numbers numbers;
    LINSERVE_UNROLL
    for (int i = 0; i < kVector; ++i) numbers.values[i] = static_cast<float>(vector.values[i]);
    return numbers;
  }

  // Adds up a lane's numbers over the whole warp, as a share of the width.
  LINSERVE_KERNEL static void Average(const NormRowsArguments<T>& arguments, PerLane<float>& sums) {
    OverLanes<1>(sums, [](float a, float b) { return a + b; });
    ForLanes([&](int lane) { sums[lane] *= arguments.share; });
  }

  LINSERVE_KERNEL static void NormRow(const NormRowsArguments<T>& arguments, int64_t row) {
    PerLane<Numbers> numbers[kReads];
    PerLane<float> mean{};
    PerLane<float> variance{};
    ForVectors(arguments, [&](int lane, int read, int column) {
      Numbers& own = numbers[read][lane];
      own = Load(arguments.rows + row * arguments.row_stride + column);
      Numbers lacking{};
      if (arguments.lacking != nullptr) lacking = Load(arguments.lacking + column);
      LINSERVE_UNROLL
      for (int i = 0; i < kVector; ++i) {
        own.values[i] += lacking.values[i];
        mean[lane] += own.values[i];
      }
    });
    Average(arguments, mean);
    ForVectors(arguments, [&](int lane, int read, int) {
      LINSERVE_UNROLL
      for (float& number : numbers[read][lane].values) {
        number -= mean[lane];
        variance[lane] += number * number;
      }
    });
    Average(arguments, variance);
    ForVectors(arguments, [&](int lane, int read, int column) {
      const float scale = ReciprocalRoot(variance[lane] + arguments.epsilon);
      const Numbers weight = Load(arguments.weight + column);
      Numbers bias{};
      if (arguments.bias != nullptr) bias = Load(arguments.bias + column);
      Vector<T, kVector> normed;
      LINSERVE_UNROLL
      for (int i = 0; i < kVector; ++i) {
        normed.values[i] =
            T(numbers[read][lane].values[i] * scale * weight.values[i] + bias.values[i]);
      }
      StoreVector(arguments.result + row * arguments.width + column, normed);
    });
  }
};

}  // namespace linserve::cuda
