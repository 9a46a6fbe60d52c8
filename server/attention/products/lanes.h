#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "attention/products/vectorized.h"

// Sums and maxima over rows, with as many vectors as the CPU has for 16 floats. To be used within
// Vectorized(): the compiler's own reductions of loops add lane by lane through memory there, which
// takes longer than a row of an attention's weights.

namespace linserve {

LINSERVE_INLINE void LoadLanes(const float* from, Lanes& lanes) {
  std::memcpy(&lanes, from, sizeof(lanes));
}

LINSERVE_INLINE void StoreLanes(const Lanes& lanes, float* to) {
  std::memcpy(to, &lanes, sizeof(lanes));
}

// Keeps so many of the first lanes, and sets the others. With a comparison for each lane, the
// compiler would go through them one by one.
LINSERVE_INLINE void KeepFirst(int64_t count, float others, Lanes& lanes) {
  static constexpr auto kKept = [] {
    std::array<uint32_t, 2 * kLanes> kept{};
    std::fill_n(kept.begin(), kLanes, ~uint32_t{0});
    return kept;
  }();
  BitLanes keep;
  std::memcpy(&keep, kKept.data() + (kLanes - count), sizeof(keep));
  lanes = std::bit_cast<Lanes>((std::bit_cast<BitLanes>(lanes) & keep) |
                               (std::bit_cast<uint32_t>(others) & ~keep));
}

// Combines all lanes by `combine`, two and two.
template <typename Combine>
LINSERVE_INLINE float Reduced(const Lanes& lanes, const Combine& combine) {
  const auto eight = combine(__builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7),
                             __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15));
  const auto four = combine(__builtin_shufflevector(eight, eight, 0, 1, 2, 3),
                            __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  const auto two = combine(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return combine(two, __builtin_shufflevector(two, two, 1, 0, 3, 2))[0];
}

LINSERVE_INLINE float Sum(const Lanes& lanes) {
  return Reduced(
      lanes, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}

LINSERVE_INLINE float Largest(const Lanes& lanes) {
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
template <typename Term>
LINSERVE_INLINE float SumOf(const float* row, int64_t width, const Term& term) {
  Lanes first{};
  Lanes second{};
  Lanes x;
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
LINSERVE_INLINE float Largest(const float* row, int64_t width) {
  if (width < kLanes) return *std::max_element(row, row + width);
  Lanes largest;
  LoadLanes(row + width - kLanes, largest);
  Lanes x;
  for (int64_t j = 0; j + kLanes <= width; j += kLanes) {
    LoadLanes(row + j, x);
    largest = x > largest ? x : largest;
  }
  return Largest(largest);
}

}  // namespace linserve
