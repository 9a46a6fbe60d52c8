#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "attention/rows/spans.h"

namespace linserve {

// Shifts groups of features along each sequence: of so many groups, floor(width / groups) features
// each, group i comes from the row `shifts[i]` before, which is 1, 0, or -1 for the row after. What
// is left over stays. Beyond either end lie zeros, and so do features that are moved from rows
// whose mask is false. rows [rows, width] -> the same; mask BOOL [rows], undefined for none. O(rows
// · width). Source: linear-attention-transformer 0.19.1 and performer-pytorch 1.1.4
// (PreShiftTokens).
at::Tensor ShiftTokens(const at::Tensor& rows, const PlacedLayout& layout,
                       const std::vector<int64_t>& shifts, const at::Tensor& mask = {});

// Does what ShiftTokens() does for the next rows of sequences, where one of the groups comes from
// the row before and none from the row after. `last` [sequences, width of a group] holds what the
// row before them passes on, zeros before the first, and then what their own last row does.
at::Tensor ContinueShift(const at::Tensor& rows, const PlacedLayout& layout,
                         const std::vector<int64_t>& shifts, const at::Tensor& last);

}  // namespace linserve
