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

// rows = gelu(rows + bias) as approximated by tanh (Hendrycks & Gimpel 2016, arXiv:1606.08415).
void BiasTanhGelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

// rows = silu(rows + bias), x / (1 + e^-x)
void BiasSilu(const RowBlock& rows, int64_t count, int64_t width, const float* bias);

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

// rows = activation(rows + bias)
void BiasActivate(Activation activation, const RowBlock& rows, int64_t count, int64_t width,
                  const float* bias);

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

// Takes the softmax of rows · scale but for its last step: rows become its weights times their sum,
// and shares [count] one over the sum. REQUIRES: scale >= 0.
void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* shares);

// Takes a step of a softmax of rows · scale that runs over columns, for each row: most [count]
// becomes the largest so far, factors [count] what earlier weights must be multiplied by for it,
// rows the weights exp((row - most) · scale), and totals [count] the sums of all weights. Columns
// behind the last one, up to a multiple of 16, become 0. REQUIRES: scale >= 0.
void RowWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                float* factors, float* totals);

// Row i of out = row i · factors[i]. `out` may be `rows`.
void ScaleRows(const RowBlock& rows, int64_t count, int64_t width, const float* factors,
               const RowBlock& out);
inline void ScaleRows(const RowBlock& rows, int64_t count, int64_t width, const float* factors) {
  ScaleRows(rows, count, width, factors, rows);
}

// rows = exp(rows). REQUIRES: rows <= 87.
void ExpRows(const RowBlock& rows, int64_t count, int64_t width);

// out [width, count] = the transpose of rows [count, width]. It is fast where the stride of `out`
// is an odd multiple of a cache line, 16 elements: then its rows do not meet in the same places of
// it.
void Transpose(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& out);

// Takes a step of a softmax that runs over rows, for each column: `most` [width] becomes the
// largest so far, factors [width] what earlier weights must be multiplied by for it, rows their
// weights exp(row - most), and sums [width] the sums of all weights.
void ColumnWeights(const RowBlock& rows, int64_t count, int64_t width, float* most, float* factors,
                   float* sums);

// Turns row i's pairs of features (2j, 2j+1) of each head by the angle whose sine is table[i, j]
// and whose cosine is table[i, dim_head/2 + j].
void RotateRows(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head,
                const RowBlock& table);

// Lets row i of square scores see the columns up to i: the others become 0. sums [count] become the
// sums of the rows.
void LowerTriangle(const RowBlock& scores, int64_t count, float* sums);

// sums[i] += row i · vector
void AddDots(const RowBlock& rows, int64_t count, int64_t width, const float* vector, float* sums);

// sums [width] += the sum of all rows
void AddRowSums(const RowBlock& rows, int64_t count, int64_t width, float* sums);

}  // namespace linserve
