#include "attention/products/avx512_product.h"

#include <ATen/cpu/Utils.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "attention/products/vectorized.h"

#if defined(__x86_64__)
#include <immintrin.h>

// A tile uses of these only what its kind of numbers needs.
#define LINSERVE_AVX512 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vnni,fma")]]
#define LINSERVE_INTO_AVX512 LINSERVE_AVX512 [[gnu::always_inline]] inline
#endif

namespace linserve {

#if defined(__x86_64__)
namespace {

// Numbers are multiplied in groups of 32 bits: one of F32, a pair of BF16, four of int8.
constexpr int64_t kGroupBytes = 4;
constexpr int64_t kLanes512 = 16;
// The sums of so many rows and vectors of columns take 24 of the 32 registers.
constexpr int64_t kRowsOfTile = 6;
constexpr int64_t kVectorsOfTile = 4;
constexpr int64_t kColumnsOfTile = kVectorsOfTile * kLanes512;

// Views groups, the rows of them so many bytes apart.
struct GroupBlock {
  const char* data;
  int64_t stride;

  GroupBlock From(int64_t row, int64_t group) const {
    return {data + row * stride + group * kGroupBytes, stride};
  }
};

GroupBlock GroupRows(const RowBlock& rows) {
  return {reinterpret_cast<const char*>(rows.data), rows.stride * int64_t{sizeof(float)}};
}
GroupBlock GroupRows(const Bf16Block& rows) {
  return {reinterpret_cast<const char*>(rows.data), rows.stride * int64_t{sizeof(c10::BFloat16)}};
}

struct MultiplyF32 {
  using Sums = __m512;
  LINSERVE_INTO_AVX512 static Sums Zero() { return _mm512_setzero_ps(); }
  LINSERVE_INTO_AVX512 static Sums Add(Sums sums, __m512i left, __m512i right) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(left), _mm512_castsi512_ps(right), sums);
  }
};

struct MultiplyBf16 {
  using Sums = __m512;
  LINSERVE_INTO_AVX512 static Sums Zero() { return _mm512_setzero_ps(); }
  LINSERVE_INTO_AVX512 static Sums Add(Sums sums, __m512i left, __m512i right) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(left),
                            reinterpret_cast<__m512bh>(right));
  }
};

struct MultiplyInt8 {
  using Sums = __m512i;
  LINSERVE_INTO_AVX512 static Sums Zero() { return _mm512_setzero_si512(); }
  LINSERVE_INTO_AVX512 static Sums Add(Sums sums, __m512i left, __m512i right) {
    return _mm512_dpbusd_epi32(sums, left, right);
  }
};

// Stores sums of F32, or adds them.
struct StoreSums {
  LINSERVE_INTO_AVX512 __m512 Number(int64_t, int64_t, __mmask16, __m512 sums) const {
    return sums;
  }
  RowBlock out;
  bool add;
};

// Makes numbers of sums of bytes.
struct StoreScaled {
  LINSERVE_INTO_AVX512 __m512 Number(int64_t row, int64_t column, __mmask16 mask,
                                     __m512i sums) const {
    const __m512 scales = _mm512_maskz_loadu_ps(mask, columns.scales + column);
    const __m512 totals = _mm512_maskz_loadu_ps(mask, columns.totals + column);
    const __m512 bias = _mm512_maskz_loadu_ps(mask, columns.bias + column);
    const __m512 step = _mm512_set1_ps(rows.steps[row]);
    const __m512 lowest = _mm512_set1_ps(rows.lowest[row]);
    const __m512 sum = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(mask, sums), scales);
    return _mm512_fmadd_ps(sum, step, _mm512_fmadd_ps(totals, lowest, bias));
  }
  RowScales rows;
  ColumnScales columns;
  RowBlock out;
  bool add;
};

// Multiplies kRows rows of `depth` groups by as many columns as the vectors have, the last one by
// those of its mask, and stores them from that row and column on.
template <typename Multiply, int64_t kRows, int64_t kVectors, typename Store>
LINSERVE_AVX512 void TileProduct(int64_t depth, const GroupBlock& left, const GroupBlock& right,
                                 __mmask16 last, int64_t row, int64_t column, const Store& store) {
  const auto mask = [&](int64_t v) { return v + 1 < kVectors ? __mmask16{0xFFFF} : last; };
  typename Multiply::Sums sums[kRows][kVectors];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) sums[i][v] = Multiply::Zero();
  }
  const char* groups = right.data;
  for (int64_t j = 0; j < depth; ++j, groups += right.stride) {
    __m512i vectors[kVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      vectors[v] = _mm512_maskz_loadu_epi32(mask(v), groups + v * int64_t{sizeof(__m512i)});
    }
#pragma GCC unroll 6
    for (int64_t i = 0; i < kRows; ++i) {
      int32_t group;
      std::memcpy(&group, left.From(i, j).data, sizeof(group));
      const __m512i everywhere = _mm512_set1_epi32(group);
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        sums[i][v] = Multiply::Add(sums[i][v], everywhere, vectors[v]);
        // Otherwise GCC 12 stores each sum.
        asm("" : "+v"(sums[i][v]));
      }
    }
  }
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const int64_t at = column + v * kLanes512;
#pragma GCC unroll 6
    for (int64_t i = 0; i < kRows; ++i) {
      float* to = store.out.Rows(row + i).data + at;
      __m512 x = store.Number(row + i, at, mask(v), sums[i][v]);
      if (store.add) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask(v), to));
      _mm512_mask_storeu_ps(to, mask(v), x);
    }
  }
}

template <typename Multiply, typename Store, int64_t kVectors, size_t... kIndices>
constexpr auto TilesOf(std::index_sequence<kIndices...>) {
  return std::array{&TileProduct<Multiply, kIndices + 1, kVectors, Store>...};
}

template <typename Multiply, typename Store>
void Multiply512(int64_t m, int64_t n, int64_t depth, const GroupBlock& left,
                 const GroupBlock& right, const Store& store) {
  using Rows = std::make_index_sequence<kRowsOfTile>;
  static constexpr std::array kTiles = {
      TilesOf<Multiply, Store, 1>(Rows()), TilesOf<Multiply, Store, 2>(Rows()),
      TilesOf<Multiply, Store, 3>(Rows()), TilesOf<Multiply, Store, 4>(Rows())};
  // Tiles are as even as can be: one row alone would wait for its own sums.
  const int64_t tiles = (m + kRowsOfTile - 1) / kRowsOfTile;
  for (int64_t column = 0; column < n; column += kColumnsOfTile) {
    const int64_t columns = std::min(kColumnsOfTile, n - column);
    const int64_t vectors = (columns + kLanes512 - 1) / kLanes512;
    const auto last = static_cast<__mmask16>(0xFFFF >> (vectors * kLanes512 - columns));
    const auto& of_rows = kTiles[static_cast<size_t>(vectors - 1)];
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t row = m * tile / tiles;
      const int64_t rows = m * (tile + 1) / tiles - row;
      of_rows[static_cast<size_t>(rows - 1)](depth, left.From(row, 0), right.From(0, column), last,
                                             row, column, store);
    }
  }
}

}  // namespace

bool HasAvx512() {
  static const bool has = CpuCapability() == "AVX512";
  return has;
}

bool HasAvx512Bf16() {
  static const bool has = HasAvx512() && __builtin_cpu_supports("avx512bf16");
  return has;
}

bool HasAvx512Vnni() {
  static const bool has = HasAvx512() && at::cpu::is_avx512_vnni_supported();
  return has;
}

void BlockProductWithAvx512(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
                            const RowBlock& c, bool add) {
  Multiply512<MultiplyF32>(m, n, k, GroupRows(a), GroupRows(b), StoreSums{c, add});
}

void Bf16ProductWithAvx512(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                           const RowBlock& c, bool add) {
  constexpr int64_t kPair = 2;
  Multiply512<MultiplyBf16>(m, n, k / kPair, GroupRows(a), GroupRows(b), StoreSums{c, add});
}

void Int8ProductWithAvx512(const Int8Operands& of, const RowBlock& out, bool add) {
  const GroupBlock left{reinterpret_cast<const char*>(of.rows.data), of.rows.stride};
  const GroupBlock right{reinterpret_cast<const char*>(of.columns), of.n * kInt8Group};
  Multiply512<MultiplyInt8>(of.count, of.n, of.k / kInt8Group, left, right,
                            StoreScaled{of.of_rows, of.of_columns, out, add});
}
#else
bool HasAvx512() { return false; }
bool HasAvx512Bf16() { return false; }
bool HasAvx512Vnni() { return false; }

void BlockProductWithAvx512(int64_t, int64_t, int64_t, const RowBlock&, const RowBlock&,
                            const RowBlock&, bool) {}
void Bf16ProductWithAvx512(int64_t, int64_t, int64_t, const Bf16Block&, const Bf16Block&,
                           const RowBlock&, bool) {}
void Int8ProductWithAvx512(const Int8Operands&, const RowBlock&, bool) {}
#endif

}  // namespace linserve
