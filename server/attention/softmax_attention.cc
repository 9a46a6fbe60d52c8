#include "attention/softmax_attention.h"

#include <algorithm>
#include <cmath>

#include "attention/aten.h"

namespace linserve {
namespace {

// Elements of a mask [..., rows, m]: 16 MiB once it is added to F32 scores.
constexpr int64_t kMaskElements = int64_t{4} << 20;

// With four axes and equal widths, which LibTorch's form without a matrix of scores demands. Zero
// features change neither a score nor another feature of the result.
at::Tensor Shaped(at::Tensor rows, int64_t width) {
  if (rows.size(-1) < width) rows = at::constant_pad_nd(rows, {0, width - rows.size(-1)});
  while (rows.dim() < 4) rows = rows.unsqueeze(0);
  return rows;
}

// BOOL [n, m]: key j is visible to query begin + i if j <= begin + i.
at::Tensor CausalMask(int64_t begin, int64_t count, int64_t keys, const at::Device& device) {
  const auto options = at::device(device).dtype(at::kLong);
  return at::arange(keys, options).le(at::arange(begin, begin + count, options).unsqueeze(-1));
}

}  // namespace

at::Tensor SoftmaxAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  const int64_t width = std::max(query.size(-1), value.size(-1));
  const at::Tensor q = Shaped(query, width);
  const at::Tensor k = Shaped(key, width);
  const at::Tensor v = Shaped(value, width);
  const bool masked = visible.mask.defined();
  const at::Tensor mask =
      masked ? Shaped(visible.mask.unsqueeze(-2), visible.mask.size(-1)) : visible.mask;
  const auto attend = [&](const at::Tensor& rows, const at::Tensor& rows_mask, bool causal) {
    return at::scaled_dot_product_attention(
        rows, k, v, masked ? std::optional<at::Tensor>(rows_mask) : std::nullopt,
        /*dropout_p=*/0.0, causal, scale);
  };
  at::Tensor result;
  if (!(masked && visible.causal)) {
    result = attend(q, mask, visible.causal);
  } else {
    // LibTorch takes one of the two, so that both become one mask, a block of queries at a time.
    const int64_t rows = std::max<int64_t>(1, kMaskElements / mask.numel());
    result = at::empty_like(q);
    for (int64_t row = 0; row < q.size(2); row += rows) {
      const int64_t count = std::min(rows, q.size(2) - row);
      const at::Tensor both = CausalMask(row, count, k.size(2), q.device()).logical_and(mask);
      result.narrow(2, row, count).copy_(attend(q.narrow(2, row, count), both, false));
    }
  }
  std::vector<int64_t> shape = query.sizes().vec();
  shape.back() = value.size(-1);
  return result.narrow(-1, 0, value.size(-1)).reshape(shape);
}

}  // namespace linserve
