#include "attention/products/softmax_rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "attention/products/block_product.h"
#include "attention/products/lanes.h"
#include "attention/products/vectorized.h"

namespace linserve {
namespace {

// The exponentials of the factors of so many rows are vectors, too.
constexpr int64_t kRowsAtOnce = 16;

// Makes weights of the row and returns their sum.
template <typename Vector>
LINSERVE_INLINE float WeighRow(float* row, int64_t width, float scale, float largest) {
  constexpr int64_t kLanes = Vector::kLanes;
  typename Vector::Floats sums{};
  typename Vector::Floats x;
  int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) {
    LoadLanes(row + j, x);
    x = Exp((x - largest) * scale);
    StoreLanes(x, row + j);
    sums += x;
  }
  float sum = Sum(sums);
  for (; j < width; ++j) {
    row[j] = Exp((row[j] - largest) * scale);
    sum += row[j];
  }
  return sum;
}

// Sets what follows the row, up to a multiple of kSoftmaxPadding, to what has no weight. Returns
// the row's length with it.
template <typename Vector>
LINSERVE_INLINE int64_t Pad(float* row, int64_t width) {
  constexpr int64_t kLanes = Vector::kLanes;
  const int64_t rest = width % kSoftmaxPadding;
  if (rest == 0) return width;
  float* tail = row + width - rest;
  for (int64_t first = 0; first < kSoftmaxPadding; first += kLanes) {
    typename Vector::Floats lanes;
    LoadLanes(tail + first, lanes);
    KeepFirst<Vector>(std::clamp<int64_t>(rest - first, 0, kLanes),
                      -std::numeric_limits<float>::infinity(), lanes);
    StoreLanes(lanes, tail + first);
  }
  return width - rest + kSoftmaxPadding;
}

}  // namespace

void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale,
                    float* shares) {
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      shares[i] = 1.0F / WeighRow<Vector>(row, width, scale, LargestIn<Vector>(row, width));
    }
  });
}

void RowWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                float* factors, float* totals) {
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    for (int64_t first = 0; first < count; first += kRowsAtOnce) {
      const int64_t some = std::min(kRowsAtOnce, count - first);
      std::array<float, kRowsAtOnce> sums;
      for (int64_t i = 0; i < some; ++i) {
        const int64_t at = first + i;
        float* row = rows.Rows(at).data;
        const int64_t padded = Pad<Vector>(row, width);
        factors[at] = most[at];
        most[at] = std::max(most[at], LargestIn<Vector>(row, padded));
        sums[static_cast<size_t>(i)] = WeighRow<Vector>(row, padded, scale, most[at]);
      }
      ForColumns(
          some, [&](int64_t i) __attribute__((always_inline)) {
            const int64_t at = first + i;
            factors[at] = Exp((factors[at] - most[at]) * scale);
            totals[at] = totals[at] * factors[at] + sums[static_cast<size_t>(i)];
          });
    }
  });
}

void ColumnWeights(const RowBlock& rows, int64_t count, int64_t width, float* most, float* factors,
                   float* sums) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t j = 0; j < width; ++j) factors[j] = most[j];
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) most[j] = row[j] > most[j] ? row[j] : most[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      factors[j] = Exp(factors[j] - most[j]);
      sums[j] *= factors[j];
    }
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) row[j] = Exp(row[j] - most[j]);
    }
  });
  for (int64_t i = 0; i < count; i += kBlockRows) {
    AddRowSums(rows.Rows(i), std::min(kBlockRows, count - i), width, sums);
  }
}

}  // namespace linserve
