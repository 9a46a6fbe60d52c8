#include "attention/linformer/softmax_attention.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/scratch.h"

namespace linserve {
namespace {

// LibTorch's form without a matrix of scores demands four axes and equal widths. Zero features
// change neither a score nor another feature of the result.
at::Tensor WithFourAxes(at::Tensor tensor) {
  while (tensor.dim() < 4) tensor = tensor.unsqueeze(0);
  return tensor;
}

at::Tensor Widened(const at::Tensor& rows, int64_t width) {
  if (rows.size(-1) == width) return WithFourAxes(rows);
  return WithFourAxes(at::constant_pad_nd(rows, {0, width - rows.size(-1)}));
}

// Calls LibTorch's kernel, which takes four axes. REQUIRES: not both masked and causal.
at::Tensor Scaled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Visible& visible, double scale) {
  std::optional<at::Tensor> mask;
  if (visible.mask.defined()) mask = WithFourAxes(visible.mask.unsqueeze(-2));
  return at::scaled_dot_product_attention(query, key, value, mask, /*dropout_p=*/0.0,
                                          visible.causal, scale);
}

// BOOL [count, keys]: key j is visible to query begin + i if j <= begin + i.
at::Tensor CausalMask(int64_t begin, int64_t count, int64_t keys, const at::Device& device) {
  const auto options = at::device(device).dtype(at::kLong);
  return at::arange(keys, options).le(at::arange(begin, begin + count, options).unsqueeze(-1));
}

// LibTorch takes a mask or `causal`, so that both become one mask, a block of queries at a time.
at::Tensor MaskedCausal(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const at::Tensor& mask, double scale) {
  const at::Tensor key_mask = WithFourAxes(mask.unsqueeze(-2));
  const int64_t rows = CountAtOnce(mask.numel(), query.is_cpu());
  at::Tensor result = at::empty_like(query);
  for (int64_t row = 0; row < query.size(2); row += rows) {
    const int64_t count = std::min(rows, query.size(2) - row);
    const int64_t keys = std::min(key.size(2), row + count);
    const at::Tensor both =
        CausalMask(row, count, keys, query.device()).logical_and(key_mask.narrow(-1, 0, keys));
    result.narrow(2, row, count)
        .copy_(at::scaled_dot_product_attention(query.narrow(2, row, count), key.narrow(2, 0, keys),
                                                value.narrow(2, 0, keys), both, /*dropout_p=*/0.0,
                                                /*is_causal=*/false, scale));
  }
  return result;
}

}  // namespace

at::Tensor SoftmaxAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  const int64_t width = std::max(query.size(-1), value.size(-1));
  const at::Tensor q = Widened(query, width);
  const at::Tensor k = Widened(key, width);
  const at::Tensor v = Widened(value, width);
  const bool both = visible.mask.defined() && visible.causal;
  const at::Tensor result =
      both ? MaskedCausal(q, k, v, visible.mask, scale) : Scaled(q, k, v, visible, scale);
  std::vector<int64_t> shape = query.sizes().vec();
  shape.back() = value.size(-1);
  return result.narrow(-1, 0, value.size(-1)).reshape(shape);
}

}  // namespace linserve
