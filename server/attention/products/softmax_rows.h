#pragma once

#include <cstdint>

#include "attention/products/bf16_rows.h"
#include "attention/products/block_math.h"

namespace linserve {

// Softmax of blocks, at once or step by step, on the calling thread.

// Takes the softmax of rows · scale but for its last step: rows become its weights times their sum,
// and shares [count] one over the sum. REQUIRES: scale >= 0.
void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* shares);

// Takes such a softmax and rounds its weights, which are exact to 1e-4 before that, to `rounded`.
// What `rows` become means nothing.
void SoftmaxWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* shares,
                    const Bf16Block& rounded);

// Takes a step of a softmax of rows · scale that runs over columns, for each row: most [count]
// becomes the largest so far, factors [count] what earlier weights must be multiplied by for it,
// rows the weights exp((row - most) · scale), and totals [count] the sums of all weights. Columns
// behind the last one, up to a multiple of kSoftmaxPadding, become 0. REQUIRES: scale > 0.
constexpr int64_t kSoftmaxPadding = 16;
void RowWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                float* factors, float* totals);

// Takes such a step and rounds its weights, which are exact to 1e-4 before that, to `rounded`. What
// `rows` become means nothing.
void RowWeights(const RowBlock& rows, int64_t count, int64_t width, float scale, float* most,
                float* factors, float* totals, const Bf16Block& rounded);

// Takes a step of a softmax that runs over rows, for each column: `most` [width] becomes the
// largest so far, factors [width] what earlier weights must be multiplied by for it, rows their
// weights exp(row - most), and sums [width] the sums of all weights.
void ColumnWeights(const RowBlock& rows, int64_t count, int64_t width, float* most, float* factors,
                   float* sums);

}  // namespace linserve
