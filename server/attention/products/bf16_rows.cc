#include "attention/products/bf16_rows.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "attention/products/avx512_product.h"
#include "attention/products/vectorized.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LINSERVE_AVX512_BF16 [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]]
#endif

namespace linserve {
namespace {

// Returns the bits of F32 with the 16 upper ones rounded to the nearest number of BF16, to even.
LINSERVE_INLINE uint32_t Rounded(float value) {
  constexpr uint32_t kInfinityBits = 0x7F800000;
  constexpr uint32_t kNaN = 0x7FC00000;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  return (bits & 0x7FFFFFFF) > kInfinityBits ? kNaN : rounded;
}

void Round(const float* row, int64_t width, uint16_t* out) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForColumns(
        width, [&](int64_t j) __attribute__((always_inline)) {
          out[j] = static_cast<uint16_t>(Rounded(row[j]) >> 16);
        });
  });
}

// Makes pairs of each number of a row and the one of the next row.
void RoundPairs(const float* even, const float* odd, int64_t width, uint32_t* out) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForColumns(
        width, [&](int64_t j) __attribute__((always_inline)) {
          out[j] = (Rounded(even[j]) >> 16) | (Rounded(odd[j]) & 0xFFFF0000);
        });
  });
}

#if defined(__x86_64__)
constexpr int64_t kLanes512 = 16;

// Returns a bit for each of the lanes that are left.
__mmask16 Lanes(int64_t left) {
  constexpr unsigned kAll = 0xFFFF;
  return static_cast<__mmask16>(left < kLanes512 ? kAll >> (kLanes512 - left) : kAll);
}

LINSERVE_AVX512_BF16 void RoundByInstruction(const float* row, int64_t width, uint16_t* out) {
  int64_t j = 0;
  for (; j + 2 * kLanes512 <= width; j += 2 * kLanes512) {
    const __m512bh both =
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(row + j + kLanes512), _mm512_loadu_ps(row + j));
    _mm512_storeu_si512(out + j, reinterpret_cast<__m512i>(both));
  }
  for (; j < width; j += kLanes512) {
    const __mmask16 lanes = Lanes(width - j);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, row + j));
    _mm256_mask_storeu_epi16(out + j, lanes, reinterpret_cast<__m256i>(rounded));
  }
}

LINSERVE_AVX512_BF16 void RoundPairsByInstruction(const float* even, const float* odd,
                                                  int64_t width, uint32_t* out) {
  alignas(64) static constexpr uint16_t kInTurns[2 * kLanes512] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i in_turns = _mm512_load_si512(kInTurns);
  for (int64_t j = 0; j < width; j += kLanes512) {
    const __mmask16 lanes = Lanes(width - j);
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(lanes, odd + j),
                                              _mm512_maskz_loadu_ps(lanes, even + j));
    const __m512i pairs = _mm512_permutexvar_epi16(in_turns, reinterpret_cast<__m512i>(both));
    _mm512_mask_storeu_epi32(out + j, lanes, pairs);
  }
}
#endif

}  // namespace

void ToBf16(const RowBlock& rows, int64_t count, int64_t width, const Bf16Block& out) {
#if defined(__x86_64__)
  static const auto round = HasAvx512Bf16() ? RoundByInstruction : Round;
#else
  constexpr auto round = Round;
#endif
  for (int64_t i = 0; i < count; ++i) {
    round(rows.Rows(i).data, width, reinterpret_cast<uint16_t*>(out.Rows(i).data));
  }
}

void ToBf16Pairs(const RowBlock& rows, int64_t count, int64_t width, int64_t padded,
                 const Bf16Block& out) {
#if defined(__x86_64__)
  static const auto round = HasAvx512Bf16() ? RoundPairsByInstruction : RoundPairs;
#else
  constexpr auto round = RoundPairs;
#endif
  const auto pairs = [&](int64_t row) {
    return reinterpret_cast<uint32_t*>(out.Rows(row / 2).data);
  };
  for (int64_t i = 0; i + 1 < count; i += 2) {
    round(rows.Rows(i).data, rows.Rows(i + 1).data, width, pairs(i));
  }
  if (count % 2 != 0) {
    static thread_local std::vector<float> zeros;
    zeros.resize(std::max(zeros.size(), static_cast<size_t>(width)));
    round(rows.Rows(count - 1).data, zeros.data(), width, pairs(count - 1));
  }
  for (int64_t pair = (count + 1) / 2; pair < padded / 2; ++pair) {
    std::fill_n(out.Rows(pair).data, 2 * width, c10::BFloat16(0));
  }
}

}  // namespace linserve
