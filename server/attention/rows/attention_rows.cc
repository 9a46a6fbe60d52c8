#include "attention/rows/attention_rows.h"

#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"

namespace linserve {

at::ScalarType SumType(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void Store(const at::Tensor& target, const at::Tensor& result) {
  constexpr double kLargestHalf = 65504;
  if (target.scalar_type() == at::kHalf && result.scalar_type() != at::kHalf) {
    target.copy_(result.clamp(-kLargestHalf, kLargestHalf));
  } else {
    target.copy_(result);
  }
}

at::Tensor SumRows(const at::Tensor& tensor, int64_t row, int64_t count) {
  return tensor.narrow(-2, row, count).to(SumType(tensor));
}

at::Tensor MaskRows(const at::Tensor& mask, int64_t row, int64_t count) {
  return mask.defined() ? mask.narrow(-1, row, count).unsqueeze(-1) : mask;
}

at::Tensor Hidden(const at::Tensor& rows, const at::Tensor& mask, double value) {
  return mask.defined() ? rows.masked_fill(mask.logical_not(), value) : rows;
}

void AddProducts(const at::Tensor& sums, const at::Tensor& keys, const at::Tensor& values) {
  const at::Tensor turned = keys.transpose(-2, -1);
  if (keys.size(-2) == 1) {
    sums.addcmul_(turned, values);
  } else {
    sums.add_(Product(turned, values));
  }
}

at::Tensor EmptyResult(const at::Tensor& query, const at::Tensor& value) {
  std::vector<int64_t> shape = query.sizes().vec();
  shape.back() = value.size(-1);
  return at::empty(shape, query.options());
}

}  // namespace linserve
