#include "attention/products/int8_avx2.h"

#include <algorithm>
#include <vector>

#include "attention/products/vectorized.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LINSERVE_AVX2 [[gnu::target("avx2")]]
#endif

namespace linserve {

#if defined(__x86_64__)
namespace {

// The sums of so many rows and columns take 12 of AVX2's 16 registers.
constexpr int64_t kTileRows = 6;
constexpr int64_t kTileColumns = 8;
constexpr int64_t kHalf = kTileColumns / 2;

// The right operand's groups for the two halves of a tile's columns, as 16-bit numbers.
struct Groups {
  __m256i halves[2];
};

// Reads the whole of a tile's columns, or as many as the mask has.
template <bool kWhole>
LINSERVE_AVX2 [[gnu::always_inline]] inline Groups ReadGroups(const int8_t* b, __m256i mask) {
  const auto* groups = reinterpret_cast<const int*>(b);
  if (kWhole) {
    const auto* bytes = reinterpret_cast<const __m128i*>(groups);
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)),
            _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes + 1))};
  }
  const __m128i first = _mm256_castsi256_si128(mask);
  const __m128i second = _mm256_extracti128_si256(mask, 1);
  return {_mm256_cvtepi8_epi16(_mm_maskload_epi32(groups, first)),
          _mm256_cvtepi8_epi16(_mm_maskload_epi32(groups + kHalf, second))};
}

// Computes a tile's sums, or those of the columns that the mask has.
template <int64_t kRows, bool kWhole>
LINSERVE_AVX2 void Tile(int64_t n, int64_t k, const int16_t* a, const int8_t* b, __m256i mask,
                        int32_t* c) {
  __m256i sums[kRows][2];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = _mm256_setzero_si256();
  for (int64_t j = 0; j < k; j += kInt8Group) {
    const Groups columns = ReadGroups<kWhole>(b + j * n, mask);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kRows; ++i) {
      const auto* four = reinterpret_cast<const __m128i*>(a + i * k + j);
      const __m256i row = _mm256_broadcastq_epi64(_mm_loadl_epi64(four));
      sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(row, columns.halves[0]));
      sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(row, columns.halves[1]));
      // Otherwise GCC 12 keeps all products before it adds them, for which there are no registers.
      asm("" : "+x"(sums[i][0]), "+x"(sums[i][1]));
    }
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) {
    constexpr int kInOrder = 0b11'01'10'00;  // of the four pairs of columns that hadd leaves
    const __m256i pairs = _mm256_hadd_epi32(sums[i][0], sums[i][1]);
    const __m256i result = _mm256_permute4x64_epi64(pairs, kInOrder);
    if (kWhole) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + i * n), result);
    } else {
      _mm256_maskstore_epi32(c + i * n, mask, result);
    }
  }
}

// Computes all columns of so many rows.
template <int64_t kRows>
LINSERVE_AVX2 void Rows(int64_t n, int64_t k, const int16_t* a, const int8_t* b, int32_t* c) {
  const __m256i all = _mm256_set1_epi32(-1);
  int64_t column = 0;
  for (; column + kTileColumns <= n; column += kTileColumns) {
    Tile<kRows, true>(n, k, a, b + column * kInt8Group, all, c + column);
  }
  if (column == n) return;
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n - column)), lanes);
  Tile<kRows, false>(n, k, a, b + column * kInt8Group, mask, c + column);
}

LINSERVE_AVX2 void Widen(const ByteBlock& rows, int64_t count, int64_t width, int16_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* row = rows.Rows(i).data;
    ForColumns(width, [&](int64_t j) { out[i * width + j] = row[j]; });
  }
}

}  // namespace

bool HasAvx2() {
  static const bool has = CpuCapability() == "AVX2" || CpuCapability() == "AVX512";
  return has;
}

void Int8ProductWithAvx2(const Int8Operands& operands, const RowBlock& out, bool add) {
  using Function = decltype(&Rows<1>);
  static constexpr Function kRows[kTileRows] = {Rows<1>, Rows<2>, Rows<3>,
                                                Rows<4>, Rows<5>, Rows<6>};
  static thread_local std::vector<int16_t> wide;
  static thread_local std::vector<int32_t> sums;
  const auto& [count, n, k, bytes, of_rows, columns, of_columns] = operands;
  wide.resize(std::max(wide.size(), static_cast<size_t>(kTileRows * k)));
  sums.resize(std::max(sums.size(), static_cast<size_t>(kTileRows * n)));
  for (int64_t row = 0; row < count; row += kTileRows) {
    const int64_t rows = std::min(kTileRows, count - row);
    Widen(bytes.Rows(row), rows, k, wide.data());
    kRows[rows - 1](n, k, wide.data(), columns, sums.data());
    FromInt8(sums.data(), n, rows, n, {of_rows.steps + row, of_rows.lowest + row}, of_columns,
             out.Rows(row), add);
  }
}
#else
bool HasAvx2() { return false; }

void Int8ProductWithAvx2(const Int8Operands&, const RowBlock&, bool) {}
#endif

}  // namespace linserve
