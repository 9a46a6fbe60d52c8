#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/rows/spans.h"

namespace linserve {

// Positions of the rows [rows, width] of a batch, counted from the start of each sequence. All of
// them add or turn in place, O(rows · width), without a table as long as the batch.

// The sinusoid: row t is [sin(t·f_0), sin(t·f_1), ..., cos(t·f_0), ...], f_j = base^(-2j/width).
// F32 [length, width]. REQUIRES: even width. Source: Vaswani et al. 2017 (arXiv:1706.03762), with
// all sines before all cosines as in the packages.
at::Tensor Sinusoid(int64_t length, int64_t width, double base);
// The sinusoid's rows for any positions, I64 [rows] -> F32 [rows, width].
at::Tensor Sinusoid(const at::Tensor& positions, int64_t width, double base);

// Row t of each sequence += table[t]. table [at least the longest, width].
void AddPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& table);

// Row t of each sequence += coarse[t div w] + fine[t mod w]; coarse [·, width], fine [w, width].
// Source: axial-positional-embedding 0.3.12 (Kitaev et al. 2020, arXiv:2001.04451).
void AddAxialPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& coarse,
                       const at::Tensor& fine);

// Rotary positions: in each of the heads of row t, features (2j, 2j+1) are turned by the angle
// whose sine is table[t, j] and whose cosine is table[t, dim_head/2 + j]. Source: Su et al. 2021
// (arXiv:2104.09864).
void Rotate(at::Tensor& rows, const PlacedLayout& layout, int64_t heads, const at::Tensor& table);

}  // namespace linserve
