#include "attention/linear/linear_attention.h"

#include <cmath>
#include <limits>

#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"

namespace linserve {
namespace {

// Returns rows of x in F32, with `hidden_value` where the mask is false.
at::Tensor Masked(const at::Tensor& x, const at::Tensor& mask, double hidden_value, int64_t row,
                  int64_t count) {
  at::Tensor rows = x.narrow(-2, row, count).to(at::kFloat);
  if (!mask.defined()) return rows;
  return rows.masked_fill(mask.narrow(-1, row, count).logical_not().unsqueeze(-1), hidden_value);
}

// Returns Σ_s κ_s v_sᵀ: [..., dim_head, dim_head]. The softmax over the length takes its maximum
// first, so that the second pass needs no more than slices.
at::Tensor Context(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& mask) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  at::Tensor largest;
  ForReadSlices(keys, [&](int64_t row, int64_t count) {
    const at::Tensor most = Masked(keys, mask, kLowest, row, count).amax({-2}, /*keepdim=*/true);
    largest = largest.defined() ? at::maximum(largest, most) : most;
  });
  at::Tensor total;
  at::Tensor context;
  ForReadSlices(keys, [&](int64_t row, int64_t count) {
    const at::Tensor weights = (Masked(keys, mask, kLowest, row, count) - largest).exp_();
    const at::Tensor sum = weights.sum({-2}).unsqueeze(-1);
    const at::Tensor product =
        Product(weights.transpose(-2, -1), Masked(values, mask, 0, row, count));
    total = total.defined() ? total.add_(sum) : sum;
    context = context.defined() ? context.add_(product) : product;
  });
  return context.div_(total);
}

}  // namespace

at::Tensor LinearContext(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& mask) {
  return Context(keys, values, mask).mul_(1.0 / std::sqrt(static_cast<double>(keys.size(-1))));
}

void AttendToContext(const at::Tensor& queries, const at::Tensor& context, const at::Tensor& out) {
  ForReadSlices(queries, [&](int64_t row, int64_t count) {
    const at::Tensor query = at::softmax(queries.narrow(-2, row, count), -1, at::kFloat);
    out.narrow(-2, row, count).copy_(Product(query, context));
  });
}

void LinearAttention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const at::Tensor& mask, const at::Tensor& out) {
  AttendToContext(queries, LinearContext(keys, values, mask), out);
}

}  // namespace linserve
