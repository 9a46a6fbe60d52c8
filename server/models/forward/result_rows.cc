#include "models/forward/result_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "core/tensor/row_scale.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kFewest = 1e-12F;  // of a norm

bool AreBlocks(const at::Tensor& rows) {
  return rows.is_cpu() && rows.scalar_type() == at::kFloat && rows.dim() == 2 &&
         rows.stride(1) == 1;
}

// Returns rows over their norms, in F32. Whatever is divided by an infinity would be a zero that
// nobody could tell from a true one.
at::Tensor Normalized(const at::Tensor& rows) {
  if (!AreBlocks(rows)) {
    at::Tensor result = rows.to(at::kFloat);
    at::Tensor norm = result.norm(2, {-1}, /*keepdim=*/true).clamp_min(kFewest);
    norm.masked_fill_(norm.isinf(), kNotANumber);
    return result / norm;
  }
  const int64_t width = rows.size(1);
  at::Tensor result = at::empty(rows.sizes(), at::kFloat);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const RowBlock from = BlockOf(rows, row);
    const RowBlock to = BlockOf(result, row);
    float squares = 0;
    AddDots(from, 1, width, from.data, &squares);
    if (std::isinf(squares)) {
      std::fill_n(to.data, width, kNotANumber);
    } else {
      SetLengths(from, 1, width, 1, kFewest, to);
    }
  }
  return result;
}

}  // namespace

void AddUp(const at::Tensor& rows, const at::Tensor& sum) {
  if (!AreBlocks(rows)) {
    sum.add_(rows.sum(0, /*keepdim=*/false, at::kFloat));
    return;
  }
  for (int64_t row = 0; row < rows.size(0); row += kBlockRows) {
    AddRowSums(BlockOf(rows, row), std::min(kBlockRows, rows.size(0) - row), rows.size(1),
               sum.mutable_data_ptr<float>());
  }
}

void Divide(const at::Tensor& sum, int64_t count) {
  if (!sum.is_cpu()) {
    sum.div_(static_cast<double>(count));
    return;
  }
  auto* elements = sum.mutable_data_ptr<float>();
  for (int64_t i = 0; i < sum.numel(); ++i) elements[i] /= static_cast<float>(count);
}

// The norm is taken in F32 before rows are rounded, which loses least.
ResultParts Finish(const std::string& name, const at::Tensor& rows, const OutputOptions& options) {
  const at::Tensor result = options.normalize ? Normalized(rows) : rows;
  if (options.dtype != DType::kI8) return {{name, result.to(ToScalarType(options.dtype))}};
  // At least the smallest normal number: rows of zeros have no largest magnitude.
  const at::Tensor scale = (result.abs().amax({-1}, /*keepdim=*/true).to(at::kFloat) / 127)
                               .clamp_min_(std::numeric_limits<float>::min());
  // The scale of a row with a NaN or an infinity says so; its steps are zeros.
  const at::Tensor steps = (result / scale).round().nan_to_num_(0);
  return {{name, steps.to(at::kChar)}, {ScaleOf(name), scale}};
}

}  // namespace linserve
