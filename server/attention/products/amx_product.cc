#include "attention/products/amx_product.h"

#include <ATen/cpu/Utils.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "attention/products/avx512_product.h"
#include "attention/products/kernel_rows.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define LINSERVE_AMX [[gnu::target("amx-tile,amx-bf16,amx-int8")]]
#define LINSERVE_INTO_AMX LINSERVE_AMX [[gnu::always_inline]] inline
#endif

namespace linserve {

#if defined(__x86_64__)
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = 64;  // of a row: 32 numbers of BF16 or 64 of int8, or 16 sums
constexpr int64_t kSumBytes = 4;
// So many rows and columns are multiplied at once: two by two tiles of sums, two of either operand.
constexpr int64_t kSquare = 2 * kTileRows;

// This is what the instruction reads (Intel's manual, "LDTILECFG").
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> row_bytes{kTileBytes, kTileBytes, kTileBytes, kTileBytes,
                                     kTileBytes, kTileBytes, kTileBytes, kTileBytes};
  std::array<uint8_t, 16> rows{kTileRows, kTileRows, kTileRows, kTileRows,
                               kTileRows, kTileRows, kTileRows, kTileRows};
};

// Says whether the CPU has AMX-BF16 and AMX-INT8, by Intel's manual, "CPUID".
bool MultipliesTiles() {
  constexpr unsigned kExtensions = 7;
  constexpr unsigned kBoth = 1U << 22U | 1U << 25U;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(kExtensions, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBoth) == kBoth;
}

// Counts the calling thread's.
int64_t& OpenScopes() {
  static thread_local int64_t scopes = 0;
  return scopes;
}

LINSERVE_AMX void SetUpTiles() {
  static constexpr TileConfig kWhole;
  _tile_loadconfig(&kWhole);
}
LINSERVE_AMX void ReleaseTiles() { _tile_release(); }

// Views rows that are so many bytes apart.
struct TileBlock {
  const std::byte* data;
  int64_t stride;

  TileBlock From(int64_t row, int64_t byte) const { return {data + row * stride + byte, stride}; }
};

// Holds both operands: left rows, and right rows of groups of 4 bytes, a column each. Whole tiles
// of depth are as they were given; what is left of it was copied, with zeros behind it.
struct Operands {
  TileBlock left, right;
  int64_t depth;  // in tiles
  TileBlock left_rest, right_rest;
  bool has_rest;
};

// Says where sums go: rows are so many bytes apart.
struct Sums {
  std::byte* data;
  int64_t stride;
  bool add;  // to those that are there
};

// These multiply tiles 4 and 5 of left rows by tiles 6 and 7 of right columns, into sums 0 to 3.
struct Bf16Tiles {
  template <bool both_rows, bool both_columns>
  LINSERVE_INTO_AMX static void Multiply() {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (both_columns) _tile_dpbf16ps(1, 4, 7);
    if constexpr (both_rows) _tile_dpbf16ps(2, 5, 6);
    if constexpr (both_rows && both_columns) _tile_dpbf16ps(3, 5, 7);
  }
};

struct Int8Tiles {
  template <bool both_rows, bool both_columns>
  LINSERVE_INTO_AMX static void Multiply() {
    _tile_dpbusd(0, 4, 6);
    if constexpr (both_columns) _tile_dpbusd(1, 4, 7);
    if constexpr (both_rows) _tile_dpbusd(2, 5, 6);
    if constexpr (both_rows && both_columns) _tile_dpbusd(3, 5, 7);
  }
};

template <typename Tiles, bool both_rows, bool both_columns>
LINSERVE_INTO_AMX void Step(const TileBlock& left, const TileBlock& right) {
  _tile_loadd(4, left.data, left.stride);
  _tile_loadd(6, right.data, right.stride);
  if constexpr (both_columns) _tile_loadd(7, right.data + kTileBytes, right.stride);
  if constexpr (both_rows) _tile_loadd(5, left.data + kTileRows * left.stride, left.stride);
  Tiles::template Multiply<both_rows, both_columns>();
}

// Computes the sums of 16 rows and columns, or of 32, from that row and column of the operands on.
template <typename Tiles, bool both_rows, bool both_columns>
LINSERVE_AMX void Square(const Operands& of, int64_t row, int64_t column, const Sums& sums) {
  std::byte* const upper = sums.data;
  const int64_t stride = sums.stride;
  std::byte* const lower = upper + kTileRows * stride;
  TileBlock left = of.left.From(row, 0);
  TileBlock right = of.right.From(0, column * kSumBytes);
  const int64_t down = kTileRows * right.stride;
  const int64_t depth = of.depth;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (sums.add) {
    _tile_loadd(0, upper, stride);
    if constexpr (both_columns) _tile_loadd(1, upper + kTileBytes, stride);
    if constexpr (both_rows) _tile_loadd(2, lower, stride);
    if constexpr (both_rows && both_columns) _tile_loadd(3, lower + kTileBytes, stride);
  }
  for (int64_t i = 0; i < depth; ++i) {
    Step<Tiles, both_rows, both_columns>(left, right);
    left.data += kTileBytes;
    right.data += down;
  }
  if (of.has_rest) {
    Step<Tiles, both_rows, both_columns>(of.left_rest.From(row, 0),
                                         of.right_rest.From(0, column * kSumBytes));
  }
  _tile_stored(0, upper, stride);
  if constexpr (both_columns) _tile_stored(1, upper + kTileBytes, stride);
  if constexpr (both_rows) _tile_stored(2, lower, stride);
  if constexpr (both_rows && both_columns) _tile_stored(3, lower + kTileBytes, stride);
}

template <typename Tiles>
void SquareOf(int64_t rows, int64_t columns, const Operands& of, int64_t row, int64_t column,
              const Sums& sums) {
  const bool both = columns > kTileRows;
  if (rows > kTileRows) {
    both ? Square<Tiles, true, true>(of, row, column, sums)
         : Square<Tiles, true, false>(of, row, column, sums);
  } else {
    both ? Square<Tiles, false, true>(of, row, column, sums)
         : Square<Tiles, false, false>(of, row, column, sums);
  }
}

// Copies rows of `bytes` into tiles of a width, with zeros behind them and below.
void CopyPadded(const TileBlock& from, int64_t rows, int64_t bytes, int64_t padded_rows,
                int64_t padded_bytes, std::byte* to) {
  std::memset(to, 0, static_cast<size_t>(padded_rows * padded_bytes));
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * padded_bytes, from.data + i * from.stride, static_cast<size_t>(bytes));
  }
}

// Makes operands of m rows of `depth_bytes`, and of n columns. Where these are no whole tiles, they
// are copied into memory of the thread.
Operands WholeTiles(int64_t m, int64_t n, int64_t depth_bytes, TileBlock left, TileBlock right) {
  static thread_local std::vector<std::byte> memory;
  const int64_t tiles = depth_bytes / kTileBytes;
  const int64_t rest = depth_bytes % kTileBytes;
  const int64_t columns = RoundUp(n, kTileRows) * kSumBytes;
  const int64_t rows = RoundUp(m, kSquare);
  const bool widens = n % kTileRows != 0;
  const int64_t copied_rows = widens ? RoundUp(depth_bytes, kTileBytes) / kSumBytes : kTileRows;
  const auto bytes = static_cast<size_t>(copied_rows * columns + rows * kTileBytes);
  memory.resize(std::max(memory.size(), bytes + kTileBytes));
  void* aligned = memory.data();
  size_t space = memory.size();
  auto* const begin = static_cast<std::byte*>(std::align(kTileBytes, bytes, aligned, space));
  std::byte* const left_copy = begin + copied_rows * columns;
  if (widens) {
    CopyPadded(right, depth_bytes / kSumBytes, n * kSumBytes, copied_rows, columns, begin);
    right = {begin, columns};
  }
  const TileBlock last = right.From(tiles * kTileRows, 0);
  if (rest == 0) return {left, right, tiles, left, right, false};
  CopyPadded(left.From(0, tiles * kTileBytes), m, rest, rows, kTileBytes, left_copy);
  if (widens) return {left, right, tiles, {left_copy, kTileBytes}, last, true};
  CopyPadded(last, rest / kSumBytes, n * kSumBytes, kTileRows, columns, begin);
  return {left, right, tiles, {left_copy, kTileBytes}, {begin, columns}, true};
}

TileBlock TileRows(const void* data, int64_t stride) {
  return {static_cast<const std::byte*>(data), stride};
}

// Sets or adds sums of a square that is not whole.
[[gnu::target("avx512f,avx512vl")]] void TakeSums(const float* sums, int64_t rows, int64_t columns,
                                                  const RowBlock& out, bool add) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* const row = sums + i * kSquare;
    float* const to = out.Rows(i).data;
    for (int64_t j = 0; j < columns; ++j) to[j] = add ? to[j] + row[j] : row[j];
  }
}

}  // namespace

AmxScope::AmxScope() {
  if (HasAmx() && OpenScopes()++ == 0) SetUpTiles();
}

AmxScope::~AmxScope() {
  if (HasAmx() && --OpenScopes() == 0) ReleaseTiles();
}

bool HasAmx() {
  static const bool has = HasAvx512Bf16() && MultipliesTiles() && at::cpu::init_amx();
  return has;
}

void Bf16ProductWithAmx(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                        const RowBlock& c, bool add) {
  constexpr int64_t kBytes = sizeof(c10::BFloat16);
  const AmxScope tiles;
  const Operands all = WholeTiles(m, n, k * kBytes, TileRows(a.data, a.stride * kBytes),
                                  TileRows(b.data, b.stride * kBytes));
  for (int64_t row = 0; row < m; row += kSquare) {
    const int64_t rows = std::min(kSquare, m - row);
    for (int64_t column = 0; column < n; column += kSquare) {
      const int64_t columns = std::min(kSquare, n - column);
      const RowBlock out = c.Rows(row).Columns(column);
      if (rows % kTileRows == 0 && columns % kTileRows == 0) {
        SquareOf<Bf16Tiles>(rows, columns, all, row, column,
                            {reinterpret_cast<std::byte*>(out.data), out.stride * kSumBytes, add});
        continue;
      }
      alignas(64) std::array<float, kSquare * kSquare> sums;
      SquareOf<Bf16Tiles>(rows, columns, all, row, column,
                          {reinterpret_cast<std::byte*>(sums.data()), kSquare * kSumBytes,
                           /*add=*/false});
      TakeSums(sums.data(), rows, columns, out, add);
    }
  }
}

void Int8ProductWithAmx(const Int8Operands& of, const RowBlock& out, bool add) {
  static thread_local std::vector<int32_t> sums;
  const AmxScope tiles;
  const Operands all = WholeTiles(of.count, of.n, of.k, TileRows(of.rows.data, of.rows.stride),
                                  TileRows(of.columns, of.n * kInt8Group));
  const int64_t stride = RoundUp(of.n, kTileRows);
  sums.resize(std::max(sums.size(), static_cast<size_t>(kSquare * stride)));
  for (int64_t row = 0; row < of.count; row += kSquare) {
    const int64_t rows = std::min(kSquare, of.count - row);
    for (int64_t column = 0; column < of.n; column += kSquare) {
      SquareOf<Int8Tiles>(rows, of.n - column, all, row, column,
                          {reinterpret_cast<std::byte*>(sums.data() + column), stride * kSumBytes,
                           /*add=*/false});
    }
    const RowScales scales{of.of_rows.steps + row, of.of_rows.lowest + row};
    FromInt8(sums.data(), stride, rows, of.n, scales, of.of_columns, out.Rows(row), add);
  }
}
#else
bool HasAmx() { return false; }
AmxScope::AmxScope() = default;
AmxScope::~AmxScope() = default;
void Bf16ProductWithAmx(int64_t, int64_t, int64_t, const Bf16Block&, const Bf16Block&,
                        const RowBlock&, bool) {}
void Int8ProductWithAmx(const Int8Operands&, const RowBlock&, bool) {}
#endif

}  // namespace linserve
