#pragma once

#include <ATen/core/Tensor.h>

#include "attention/rows/spans.h"

namespace linserve {

// Shifts groups of features along each sequence: of floor(width/3) features each, the first comes
// from the row before, the second stays, the third comes from the row after; causal: of
// floor(width/2), the first from the row before. What is left over stays. Beyond either end lie
// zeros.
// rows [rows, width] -> the same. O(rows · width). Source: linear-attention-transformer 0.19.1
// (PreShiftTokens).
at::Tensor ShiftTokens(const at::Tensor& rows, const PlacedLayout& layout, bool causal);

// Does what ShiftTokens() does, causally, for the next rows of sequences. `last` [sequences,
// floor(width/2)] holds what the row before them passes on, zeros before the first, and then what
// their own last row does.
at::Tensor ContinueShift(const at::Tensor& rows, const PlacedLayout& layout,
                         const at::Tensor& last);

}  // namespace linserve
