#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "attention/products/vectorized.h"

// Sums and maxima over rows, by vectors of `Vector`, a VectorOf. To be used within WithVectors():
// the compiler's own reductions of loops add lane by lane through memory there, which takes longer
// than a row of an attention's weights.

namespace linserve {

template <typename Lanes>
LINSERVE_INLINE void LoadLanes(const float* from, Lanes& lanes) {
  std::memcpy(&lanes, from, sizeof(lanes));
}

template <typename Lanes>
LINSERVE_INLINE void StoreLanes(const Lanes& lanes, float* to) {
  std::memcpy(to, &lanes, sizeof(lanes));
}

// Keeps so many of the first lanes, and sets the others. With a comparison for each lane, the
// compiler would go through them one by one.
template <typename Vector>
LINSERVE_INLINE void KeepFirst(int64_t count, float others, typename Vector::Floats& lanes) {
  using Floats = typename Vector::Floats;
  using Bits = typename Vector::Bits;
  constexpr int64_t kLanes = Vector::kLanes;
  static constexpr auto kKept = [] {
    std::array<uint32_t, 2 * kLanes> kept{};
    std::fill_n(kept.begin(), kLanes, ~uint32_t{0});
    return kept;
  }();
  Bits keep;
  std::memcpy(&keep, kKept.data() + (kLanes - count), sizeof(keep));
  lanes = __builtin_bit_cast(Floats, (__builtin_bit_cast(Bits, lanes) & keep) |
                                         (__builtin_bit_cast(uint32_t, others) & ~keep));
}

// Combines all lanes by `combine`, two and two.
template <typename Lanes, typename Combine>
LINSERVE_INLINE float Reduced(const Lanes& lanes, const Combine& combine) {
  constexpr size_t kHalf = sizeof(Lanes) / sizeof(float) / 2;
  if constexpr (kHalf == 1) {
    return combine(lanes[0], lanes[1]);
  } else {
    typename VectorOf<kHalf>::Floats first;
    typename VectorOf<kHalf>::Floats second;
    std::memcpy(&first, &lanes, sizeof(first));
    std::memcpy(&second, reinterpret_cast<const char*>(&lanes) + sizeof(first), sizeof(second));
    return Reduced(combine(first, second), combine);
  }
}

template <typename Lanes>
LINSERVE_INLINE float Sum(const Lanes& lanes) {
  return Reduced(
      lanes, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}

template <typename Lanes>
LINSERVE_INLINE float LowestLane(const Lanes& lanes) {
  return Reduced(
      lanes,
      [](const auto& a, const auto& b) __attribute__((always_inline)) { return a < b ? a : b; });
}

template <typename Lanes>
LINSERVE_INLINE float LargestLane(const Lanes& lanes) {
  return Reduced(
      lanes,
      [](const auto& a, const auto& b) __attribute__((always_inline)) { return a > b ? a : b; });
}

// These are terms of SumOf(), of a vector or of one number.
struct Itself {
  template <typename Float>
  LINSERVE_INLINE Float operator()(const Float& x) const {
    return x;
  }
};
struct SquareFrom {
  template <typename Float>
  LINSERVE_INLINE Float operator()(const Float& x) const {
    return (x - mean) * (x - mean);
  }

  float mean = 0;
};

// Returns the sum of term(x) over all x of a row.
template <typename Vector, typename Term>
LINSERVE_INLINE float SumOf(const float* row, int64_t width, const Term& term) {
  constexpr int64_t kLanes = Vector::kLanes;
  typename Vector::Floats first{};
  typename Vector::Floats second{};
  typename Vector::Floats x;
  int64_t j = 0;
  for (; j + 2 * kLanes <= width; j += 2 * kLanes) {
    LoadLanes(row + j, x);
    first += term(x);
    LoadLanes(row + j + kLanes, x);
    second += term(x);
  }
  for (; j + kLanes <= width; j += kLanes) {
    LoadLanes(row + j, x);
    first += term(x);
  }
  float sum = Sum(first + second);
  for (; j < width; ++j) sum += term(row[j]);
  return sum;
}

// Returns the largest of the row, which is not empty.
template <typename Vector>
LINSERVE_INLINE float LargestIn(const float* row, int64_t width) {
  constexpr int64_t kLanes = Vector::kLanes;
  if (width < kLanes) return *std::max_element(row, row + width);
  typename Vector::Floats largest;
  LoadLanes(row + width - kLanes, largest);
  typename Vector::Floats x;
  for (int64_t j = 0; j + kLanes <= width; j += kLanes) {
    LoadLanes(row + j, x);
    largest = x > largest ? x : largest;
  }
  return LargestLane(largest);
}

}  // namespace linserve
