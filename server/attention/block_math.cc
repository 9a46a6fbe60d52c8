#include "attention/block_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace linserve {
namespace {

#define LINSERVE_INLINE [[gnu::always_inline]] inline

// The function's loops are compiled for each kind of vectors, once it is inlined here.
#if defined(__x86_64__)
template <typename Function>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void WithAvx512(const Function& f) {
  f();
}

template <typename Function>
[[gnu::target("arch=x86-64-v3")]] void WithAvx2(const Function& f) {
  f();
}

template <typename Function>
void Vectorized(const Function& function) {
  static const bool avx512 = __builtin_cpu_supports("x86-64-v4") != 0;
  static const bool avx2 = __builtin_cpu_supports("x86-64-v3") != 0;
  if (avx512) {
    WithAvx512(function);
  } else if (avx2) {
    WithAvx2(function);
  } else {
    function();
  }
}
#else
template <typename Function>
void Vectorized(const Function& function) {
  function();
}
#endif

// 2^x to 2e-8 of it, for x in ±126; elsewhere without meaning.
LINSERVE_INLINE float Exp2(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: its last bit is worth one
  const float shifted = x + kRound;
  const float f = x - (shifted - kRound);  // in ±0.5
  float power = 0.000153458095F;
  power = power * f + 0.001339993090F;
  power = power * f + 0.009618489072F;
  power = power * f + 0.055503286421F;
  power = power * f + 0.240226462483F;
  power = power * f + 0.693147182465F;
  power = power * f + 1.0F;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(power) + exponent);
}

// x·Φ(x) = max(x, 0) - |x|·Φ(-|x|), and log2 Φ(-a) is nearly a polynomial.
LINSERVE_INLINE float Gelu(float x) {
  constexpr float kNothingLeft = 6.0F;  // 6·Φ(-6) = 6e-9
  const float a = std::fabs(x);
  float log = -1.95879943e-06F;
  log = log * a + 2.88159354e-05F;
  log = log * a - 1.35557377e-04F;
  log = log * a - 2.60703033e-04F;
  log = log * a + 7.22788926e-03F;
  log = log * a - 5.26128300e-02F;
  log = log * a - 4.59168345e-01F;
  log = log * a - 1.15111005e+00F;
  log = log * a - 1.0F;
  const float tail = a * Exp2(log);
  return (x > 0 ? x : 0.0F) - (a > kNothingLeft ? 0.0F : tail);
}

// Calls `function` for the elements of each row, biased or not.
template <typename Function>
LINSERVE_INLINE void ForBiased(const RowBlock& rows, int64_t count, int64_t width,
                               const float* bias, const Function& function) {
  for (int64_t i = 0; i < count; ++i) {
    float* row = rows.Rows(i).data;
    if (bias != nullptr) {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) row[j] = function(row[j] + bias[j]);
    } else {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) row[j] = function(row[j]);
    }
  }
}

LINSERVE_INLINE void NormalizeRow(const float* row, int64_t width, const float* weight,
                                  const float* bias, float eps, float* out) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < width; ++j) sum += row[j];
  const float mean = sum / static_cast<float>(width);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t j = 0; j < width; ++j) squares += (row[j] - mean) * (row[j] - mean);
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + eps);
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) out[j] = (row[j] - mean) * scale * weight[j] + bias[j];
}

LINSERVE_INLINE float Largest(const float* row, int64_t width) {
  constexpr int64_t kLanes = 16;
  if (width < kLanes) return *std::max_element(row, row + width);
  std::array<float, kLanes> lanes;
  std::copy_n(row, kLanes, lanes.begin());
  const auto take = [&](const float* values) __attribute__((always_inline)) {
#pragma omp simd
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = values[j] > lanes[j] ? values[j] : lanes[j];
  };
  for (int64_t i = kLanes; i + kLanes <= width; i += kLanes) take(row + i);
  take(row + width - kLanes);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) lanes[j] = std::max(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

// Returns one over the sum of what it leaves in the row.
LINSERVE_INLINE float SoftmaxRow(float* row, int64_t width, float scale) {
  constexpr float kLog2OfE = 1.44269504F;
  constexpr float kLowest = -126.0F;
  const float factor = scale * kLog2OfE;
  const float largest = Largest(row, width);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < width; ++j) {
    const float power = (row[j] - largest) * factor;
    const float weight = power < kLowest ? 0.0F : Exp2(power);
    row[j] = weight;
    sum += weight;
  }
  return 1.0F / sum;
}

}  // namespace

void AddBias(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(rows, count, width, bias, [](float x) __attribute__((always_inline)) {
      return x;
    });
  });
}

void BiasGelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(rows, count, width, bias, [](float x) __attribute__((always_inline)) {
      return Gelu(x);
    });
  });
}

void BiasRelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(rows, count, width, bias, [](float x) __attribute__((always_inline)) {
      return x > 0 ? x : 0.0F;
    });
  });
}

void Gate(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  if (bias != nullptr) AddBias(rows.Columns(width), count, width, bias + width);
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) row[j] *= row[width + j];
    }
  });
}

void NormalizeRows(const RowBlock& rows, int64_t count, int64_t width, const float* weight,
                   const float* bias, float eps, const RowBlock& out) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      NormalizeRow(rows.Rows(i).data, width, weight, bias, eps, out.Rows(i).data);
    }
  });
}

void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale,
                    float* shares) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) shares[i] = SoftmaxRow(rows.Rows(i).data, width, scale);
  });
}

void ScaleRows(const RowBlock& rows, int64_t count, int64_t width, const float* factors) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      const float factor = factors[i];
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) row[j] *= factor;
    }
  });
}

}  // namespace linserve
