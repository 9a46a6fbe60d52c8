#include "attention/products/int8_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "attention/products/lanes.h"

namespace linserve {
namespace {

struct Range {
  float lowest;
  float largest;  // no number where the row is not finite
};

template <typename Vector>
LINSERVE_INLINE Range RangeOf(const float* row, int64_t width) {
  constexpr int64_t kLanes = Vector::kLanes;
  float lowest = row[0];
  float largest = row[0];
  float nothing = 0;  // and no number, once it has met one that is not finite
  int64_t j = 0;
  if (width >= 2 * kLanes) {
    typename Vector::Floats low;
    LoadLanes(row, low);
    typename Vector::Floats high = low;
    typename Vector::Floats zeros[2] = {};
    typename Vector::Floats x;
    typename Vector::Floats y;
    for (; j + 2 * kLanes <= width; j += 2 * kLanes) {
      LoadLanes(row + j, x);
      LoadLanes(row + j + kLanes, y);
      zeros[0] += x * 0.0F;
      zeros[1] += y * 0.0F;
      const typename Vector::Floats less = x < y ? x : y;
      const typename Vector::Floats more = x > y ? x : y;
      low = less < low ? less : low;
      high = more > high ? more : high;
    }
    lowest = LowestLane(low);
    largest = LargestLane(high);
    nothing = Sum(zeros[0] + zeros[1]);
  }
  for (; j < width; ++j) {
    lowest = std::min(lowest, row[j]);
    largest = std::max(largest, row[j]);
    nothing += row[j] * 0.0F;
  }
  return {lowest, largest + nothing};
}

// A conversion of one vector at a time would go through the lanes one by one with GCC 12.
LINSERVE_INLINE void RowToInt8(const float* row, int64_t width, float lowest, float steps,
                               uint8_t* out) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: the last bits are those of the integer
  ForColumns(width, [&](int64_t j) {
    out[j] = static_cast<uint8_t>(__builtin_bit_cast(uint32_t, (row[j] - lowest) * steps + kRound));
  });
}

// Makes numbers of so many vectors of columns, row by row, so that what is of the columns stays in
// registers.
template <typename Vector, size_t kVectors, bool kAdd>
LINSERVE_INLINE void ScaleColumns(const int32_t* sums, int64_t count, int64_t stride,
                                  const RowScales& rows, const ColumnScales& columns,
                                  const RowBlock& out) {
  using Lanes = typename Vector::Floats;
  constexpr int64_t kLanes = Vector::kLanes;
  std::array<Lanes, kVectors> of_columns;
  std::array<Lanes, kVectors> totals;
  std::array<Lanes, kVectors> bias;
  for (size_t v = 0; v < kVectors; ++v) {
    LoadLanes(columns.scales + v * kLanes, of_columns[v]);
    LoadLanes(columns.totals + v * kLanes, totals[v]);
    LoadLanes(columns.bias + v * kLanes, bias[v]);
  }
  for (int64_t i = 0; i < count; ++i) {
    float* row = out.Rows(i).data;
    for (size_t v = 0; v < kVectors; ++v) {
      typename Vector::Integers sum;
      std::memcpy(&sum, sums + i * stride + v * kLanes, sizeof(sum));
      Lanes x = totals[v] * rows.lowest[i] + bias[v];
      x += __builtin_convertvector(sum, Lanes) * of_columns[v] * rows.steps[i];
      if (kAdd) {
        Lanes before;
        LoadLanes(row + v * kLanes, before);
        x += before;
      }
      StoreLanes(x, row + v * kLanes);
    }
  }
}

template <typename Vector, bool kAdd>
LINSERVE_INLINE void ScaleAll(const int32_t* sums, int64_t stride, int64_t count, int64_t width,
                              const RowScales& rows, const ColumnScales& columns,
                              const RowBlock& out) {
  constexpr int64_t kLanes = Vector::kLanes;
  constexpr size_t kVectors = 4;  // whose three operands and results AVX-512 has registers for
  const auto from = [&](int64_t j) {
    return ColumnScales{columns.scales + j, columns.totals + j, columns.bias + j};
  };
  int64_t j = 0;
  for (; j + int64_t{kVectors} * kLanes <= width; j += kVectors * kLanes) {
    ScaleColumns<Vector, kVectors, kAdd>(sums + j, count, stride, rows, from(j), out.Columns(j));
  }
  for (; j + kLanes <= width; j += kLanes) {
    ScaleColumns<Vector, 1, kAdd>(sums + j, count, stride, rows, from(j), out.Columns(j));
  }
  for (int64_t i = 0; i < count && j < width; ++i) {
    float* row = out.Rows(i).data;
    for (int64_t column = j; column < width; ++column) {
      const float sum = static_cast<float>(sums[i * stride + column]);
      const float x = columns.totals[column] * rows.lowest[i] + columns.bias[column] +
                      sum * columns.scales[column] * rows.steps[i];
      row[column] = x + (kAdd ? row[column] : 0.0F);
    }
  }
}

}  // namespace

void ToInt8(const RowBlock& rows, int64_t count, int64_t width, const ByteBlock& out,
            const RowScales& scales) {
  constexpr float kSteps = 255;
  constexpr float kNothing = 1e-30F;  // 255 over less would be no number
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      const Range range = RangeOf<Vector>(row, width);
      const float between = range.largest - range.lowest;
      scales.lowest[i] = range.lowest;
      scales.steps[i] = between / kSteps;
      RowToInt8(row, width, range.lowest, between < kNothing ? 0 : kSteps / between,
                out.Rows(i).data);
    }
  });
}

void FromInt8(const int32_t* sums, int64_t stride, int64_t count, int64_t width,
              const RowScales& scales, const ColumnScales& of_columns, const RowBlock& out,
              bool add) {
  WithVectors([&](auto of) __attribute__((always_inline)) {
    if (add) {
      ScaleAll<decltype(of), true>(sums, stride, count, width, scales, of_columns, out);
    } else {
      ScaleAll<decltype(of), false>(sums, stride, count, width, scales, of_columns, out);
    }
  });
}

}  // namespace linserve
