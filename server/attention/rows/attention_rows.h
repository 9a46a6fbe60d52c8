#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "attention/rows/scratch.h"
#include "attention/rows/slices.h"

namespace linserve {

// These functions say how attention reads rows [..., rows, width] and writes them, whatever their
// type.

// Returns the type in which attention sums: F16 and BF16 have too few digits for states of long
// sequences, and F16 ends at 65,504.
at::ScalarType SumType(const at::Tensor& tensor);

// Writes target = result. What F16 cannot hold becomes its largest number, not infinity.
void Store(const at::Tensor& target, const at::Tensor& result);

// Calls function(row, count) for all rows in turn, as many at once as scratch allows.
template <typename Function>
void ForReadSlices(const at::Tensor& tensor, const Function& function) {
  const int64_t rows = tensor.size(-2);
  const int64_t most = CountAtOnce(tensor.numel() / std::max<int64_t>(rows, 1), tensor.is_cpu());
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t count = std::min(most, rows - row);
    function(row, count);
    RowsRead(count);
  }
}

// Returns rows [row, row + count) along the axis before the last, in the type of the sums.
at::Tensor SumRows(const at::Tensor& tensor, int64_t row, int64_t count);

// Returns rows [row, row + count) of a mask [..., m], as a column [..., count, 1]; undefined if the
// mask is.
at::Tensor MaskRows(const at::Tensor& mask, int64_t row, int64_t count);

// Replaces rows [..., count, width] by `value` where the column of the mask is false. An undefined
// mask hides nothing.
at::Tensor Hidden(const at::Tensor& rows, const at::Tensor& mask, double value);

// Adds keysᵀ · values to sums [..., d, e], for rows of keys [..., rows, d] and values [..., rows,
// e]. For one row that is no product worth a kernel's start.
void AddProducts(const at::Tensor& sums, const at::Tensor& keys, const at::Tensor& values);

// A causal pass weighs so many rows key by key: few steps, and no more work than the state's.
inline constexpr int64_t kWeighedRows = 128;

// Makes an uninitialised result of one row a query: [..., n, width of value], of the query's type.
at::Tensor EmptyResult(const at::Tensor& query, const at::Tensor& value);

}  // namespace linserve
