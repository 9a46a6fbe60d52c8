#pragma once

#include <cstdint>

#include "attention/rows/activation.h"

namespace linserve {

// Views rows of F32 in the CPU's memory, `stride` elements apart. They are a block: few enough to
// stay in the core's own cache from one step to the next.
struct RowBlock {
  RowBlock(float* first, int64_t between) : data(first), stride(between) {}

  float* data;
  int64_t stride;

  RowBlock Columns(int64_t first) const { return {data + first, stride}; }
  RowBlock Rows(int64_t first) const { return {data + first * stride, stride}; }
};

// These functions are steps on blocks, between the products of attention/products/block_product.h.
// They run on the calling thread, with what vectors its CPU has.

// rows [count, width] += bias [width]
void AddBias(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = gelu(rows + bias), the exact GELU, to 4e-8 of it. `bias` may be nullptr here and below.
void BiasGelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = gelu(rows + bias), the exact GELU, to 2e-4 of it or 1e-6, for what is rounded next: BF16
// loses ten times as much.
void BiasGeluToRound(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = gelu(rows + bias) as approximated by tanh (Hendrycks & Gimpel 2016, arXiv:1606.08415).
void BiasTanhGelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = silu(rows + bias), x / (1 + e^-x)
void BiasSilu(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = cap · tanh(rows · scale / cap)
void CapRows(const RowBlock& rows, int64_t count, int64_t width, float scale, float cap);

// rows = tanh(rows + bias)
void BiasTanh(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = max(rows + bias, 0)
void BiasRelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// out = elu(rows) + 1, which is e^x where x is negative
void EluPlusOne(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& out);

// rows [count, width] = exp(rows - offsets[i]) and, where `mirrored` is not nullptr, mirrored =
// exp(-rows - offsets[i]).
void ExpOffsets(const RowBlock& rows, int64_t count, int64_t width, const float* offsets,
                float* mirrored);

// rows = activation(rows + bias). With `to_round` they are rounded next, to BF16 or bytes.
void BiasActivate(Activation activation, const RowBlock& rows, int64_t count, int64_t width,
                  const float* bias, bool to_round = false);

// rows [count, 2 · width]: the first half *= the second half + bias[width...] (GLU, whose first
// half is activated already).
void Gate(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// out = (rows - mean) / sqrt(variance + eps) · weight + bias over each row, the biased variance
// (torch.nn.LayerNorm). `out` may be `rows`, `bias` nullptr.
void NormalizeRows(const RowBlock& rows, int64_t count, int64_t width, const float* weight,
                   const float* bias, float eps, const RowBlock& out);

// out = rows / max(|row|, eps) · length. `out` may be `rows`.
void SetLengths(const RowBlock& rows, int64_t count, int64_t width, float length, float eps,
                const RowBlock& out);

// out = row / sqrt(mean of row² + eps) · weight (RMSNorm; Zhang & Sennrich 2019, arXiv:1910.07467).
// `out` may be `rows`.
void SetMeanSquares(const RowBlock& rows, int64_t count, int64_t width, const float* weight,
                    float eps, const RowBlock& out);

// Row i of out = row i · factors[i]. `out` may be `rows`.
void ScaleRows(const RowBlock& rows, int64_t count, int64_t width, const float* factors,
               const RowBlock& out);
inline void ScaleRows(const RowBlock& rows, int64_t count, int64_t width, const float* factors) {
  ScaleRows(rows, count, width, factors, rows);
}

// rows = exp(rows). REQUIRES: rows <= 87.
void ExpRows(const RowBlock& rows, int64_t count, int64_t width);

// Returns a stride of at least so many elements that is an odd number of cache lines: columns of
// rows so far apart do not meet in the same places of a cache.
constexpr int64_t OddLines(int64_t elements) {
  constexpr int64_t kLine = 16;
  const int64_t lines = (elements + kLine - 1) / kLine;
  return (lines + 1 - lines % 2) * kLine;
}

// out [width, count] = the transpose of rows [count, width], of any 32 bits. It is fast where the
// stride of `out` is one of OddLines().
void Transpose(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& out);

// Turns row i's pairs of features (2j, 2j+1) of each head by the angle whose sine is table[i, j]
// and whose cosine is table[i, dim_head/2 + j].
void RotateRows(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head,
                const RowBlock& table);

// Turns each head's halves instead, features (j, dim_head/2 + j), by the same table.
void RotateHalves(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head,
                  const RowBlock& table);

// Lets row i of square scores see the columns up to i or, where rows lie in buckets of several,
// those before its bucket: the others become 0. sums [count] become the sums of the rows.
void LowerTriangle(const RowBlock& scores, int64_t count, float* sums, int64_t bucket = 1);

// rows [count, width] += other
void AddRows(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& other);

// sums[i] += row i · vector
void AddDots(const RowBlock& rows, int64_t count, int64_t width, const float* vector, float* sums);

// sums [width] += the sum of all rows
void AddRowSums(const RowBlock& rows, int64_t count, int64_t width, float* sums);

}  // namespace linserve
