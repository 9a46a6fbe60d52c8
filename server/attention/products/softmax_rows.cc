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
template <typename Vector, Digits kDigits>
LINSERVE_INLINE float WeighRow(float* row, int64_t width, float scale, float largest) {
  constexpr int64_t kLanes = Vector::kLanes;
  typename Vector::Floats sums{};
  typename Vector::Floats x;
  int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) {
    LoadLanes(row + j, x);
    x = Exp<kDigits>((x - largest) * scale);
    StoreLanes(x, row + j);
    sums += x;
  }
  float sum = Sum(sums);
  for (; j < width; ++j) {
    row[j] = Exp<kDigits>((row[j] - largest) * scale);
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

// Weighs a few rows at a time, which are in the first cache still when use(first, some) has them.
template <Digits kDigits, typename Use>
void Softmax(const RowBlock& rows, int64_t count, int64_t width, float scale, float* shares,
             const Use& use) {
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    for (int64_t first = 0; first < count; first += kRowsAtOnce) {
      const int64_t some = std::min(kRowsAtOnce, count - first);
      for (int64_t i = first; i < first + some; ++i) {
        float* row = rows.Rows(i).data;
        const float largest = LargestIn<Vector>(row, width);
        shares[i] = 1.0F / WeighRow<Vector, kDigits>(row, width, scale, largest);
      }
      use(first, some);
    }
  });
}

// As Softmax(), of a step over columns. Rows are as wide as `use` is told.
template <Digits kDigits, typename Use>
void SoftmaxStep(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                 float* factors, float* totals, const Use& use) {
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    for (int64_t first = 0; first < count; first += kRowsAtOnce) {
      const int64_t some = std::min(kRowsAtOnce, count - first);
      std::array<float, kRowsAtOnce> sums;
      int64_t padded = width;
      for (int64_t i = 0; i < some; ++i) {
        const int64_t at = first + i;
        float* row = rows.Rows(at).data;
        padded = Pad<Vector>(row, width);
        factors[at] = most[at];
        most[at] = std::max(most[at], LargestIn<Vector>(row, padded));
        sums[static_cast<size_t>(i)] = WeighRow<Vector, kDigits>(row, padded, scale, most[at]);
      }
      ForColumns(
          some, [&](int64_t i) __attribute__((always_inline)) {
            const int64_t at = first + i;
            factors[at] = Exp((factors[at] - most[at]) * scale);
            totals[at] = totals[at] * factors[at] + sums[static_cast<size_t>(i)];
          });
      use(first, some, padded);
    }
  });
}

}  // namespace

void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale,
                    float* shares) {
  Softmax<Digits::kF32>(rows, count, width, scale, shares, [](int64_t, int64_t) {});
}

void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* shares,
                    const Bf16Block& rounded) {
  Softmax<Digits::kToRound>(rows, count, width, scale, shares, [&](int64_t first, int64_t some) {
    ToBf16(rows.Rows(first), some, width, rounded.Rows(first));
  });
}

void RowWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                float* factors, float* totals) {
  SoftmaxStep<Digits::kF32>(rows, count, width, scale, most, factors, totals,
                            [](int64_t, int64_t, int64_t) {});
}

void RowWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                float* factors, float* totals, const Bf16Block& rounded) {
  SoftmaxStep<Digits::kToRound>(rows, count, width, scale, most, factors, totals,
                                [&](int64_t first, int64_t some, int64_t padded) {
                                  ToBf16(rows.Rows(first), some, padded, rounded.Rows(first));
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
