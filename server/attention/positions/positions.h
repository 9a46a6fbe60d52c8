#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/rows/spans.h"

namespace linserve {

// These functions work on the positions of the rows [rows, width] of a batch, counted from the
// start of each sequence. All of them add or turn in place, O(rows · width), without a table as
// long as the batch. On a device, which has its own table of the layout, they are a launch or two
// for all sequences, and change rows of padding, too.

// Makes the sinusoid: row t is [sin(t·f_0), sin(t·f_1), ..., cos(t·f_0), ...], f_j =
// base^(-2j/width). F32 [length, width]. REQUIRES: even width. Source: Vaswani et al. 2017
// (arXiv:1706.03762), with all sines before all cosines as in the packages.
at::Tensor Sinusoid(int64_t length, int64_t width, double base,
                    const at::Device& device = at::kCPU);
// Makes the sinusoid's rows for any positions, [rows] -> F32 [rows, width], whose frequencies are
// divided by `stretch`.
at::Tensor Sinusoid(const at::Tensor& positions, int64_t width, double base, double stretch = 1);
// Makes the sinusoid's rows of these frequencies, F32 [width/2].
at::Tensor Sinusoid(const at::Tensor& positions, const at::Tensor& frequencies);

// Returns I64 [rows]: the place of each token of ids [rows] among those of its sequence that are
// not padding, counted from padding + 1 on. The place of padding is `padding`. Source: RoBERTa
// (fairseq).
at::Tensor PlacesOfTokens(const at::Tensor& ids, const PlacedLayout& layout, int64_t padding);

// Adds table[t] to row t of each sequence. table [at least the longest, width]. On the CPU both are
// F32, here and in AddAxialPositions().
void AddPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& table);

// Adds coarse[t div w] + fine[t mod w] to row t of each sequence; coarse [·, width], fine [w,
// width]. Source: axial-positional-embedding 0.3.12 (Kitaev et al. 2020, arXiv:2001.04451).
void AddAxialPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& coarse,
                       const at::Tensor& fine);

// Turns the heads of row t by its position: features (2j, 2j+1) by the angle whose sine is table[t,
// j] and whose cosine is table[t, dim_head/2 + j] (rotary positions). Source: Su et al. 2021
// (arXiv:2104.09864).
void Rotate(at::Tensor& rows, const PlacedLayout& layout, int64_t heads, const at::Tensor& table);

// Moves the two halves of each head's outputs [heads · dim_head, ...] side by side, pair by pair:
// Rotate() turns neighbours, and many models turn halves. Where queries and keys are moved alike,
// their products stay the same.
at::Tensor ByPairs(const at::Tensor& outputs, int64_t heads);

}  // namespace linserve
