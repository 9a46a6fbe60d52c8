#include "attention/rows/scored_attention.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"

namespace linserve {
namespace {

constexpr double kHiddenScore = -1e30;

// Returns how many queries are computed at a time that see so many keys, where so many matrices
// hold all pairs of both.
int64_t QueriesAtOnce(int64_t keys, int64_t matrices) {
  constexpr int64_t kPairsAtOnce = int64_t{1} << 24;
  return std::max<int64_t>(1, kPairsAtOnce / (matrices * keys));
}

}  // namespace

at::Tensor ScoresOfVisible(const at::Tensor& visible, at::ScalarType scores) {
  constexpr double kHiddenInF16 = -6e4;  // which has no number that is less
  return at::where(visible, 0.0, scores == at::kHalf ? kHiddenInF16 : kHiddenScore);
}

at::Tensor SeeAny(const at::Tensor& visible, int64_t before, int64_t after) {
  const int64_t length = visible.size(1);
  const at::Tensor seen = at::constant_pad_nd(visible.to(at::kLong).cumsum(1), {1, 0});
  const at::Tensor places = at::arange(length, seen.options());
  const auto up_to = [&](const at::Tensor& ends) { return seen.index_select(1, ends); };
  const at::Tensor last =
      after < 0 ? at::full_like(places, length) : (places + after + 1).clamp_max(length);
  const at::Tensor first = before < 0 ? at::zeros_like(places) : (places - before).clamp_min(0);
  return up_to(last) > up_to(first);
}

at::Tensor AttendByParts(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, double scale, int64_t matrices,
                         const std::function<at::Tensor(int64_t, int64_t)>& added) {
  const int64_t length = queries.size(2);
  const int64_t most = matrices == 0 ? length : QueriesAtOnce(keys.size(2), matrices);
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < length; first += most) {
    const int64_t some = std::min(most, length - first);
    const at::Tensor scores = added(first, some);
    parts.push_back(at::scaled_dot_product_attention(
        queries.narrow(2, first, some), keys, values,
        scores.defined() ? std::optional(scores) : std::nullopt, /*dropout_p=*/0,
        /*is_causal=*/false, scale));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 2);
}

at::Tensor AttendCapped(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                        double scale, double cap, const at::Tensor& visible) {
  const int64_t length = queries.size(2);
  const int64_t shared = queries.size(1) / keys.size(1);
  const at::Tensor own_keys = keys.repeat_interleave(shared, 1).transpose(-2, -1);
  const at::Tensor own_values = values.repeat_interleave(shared, 1);
  const int64_t most = QueriesAtOnce(length, queries.size(0) * queries.size(1));
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < length; first += most) {
    const int64_t some = std::min(most, length - first);
    at::Tensor scores = Product(queries.narrow(2, first, some), own_keys).to(at::kFloat);
    scores.mul_(scale / cap).tanh_().mul_(cap);
    if (visible.defined()) {
      const at::Tensor seen = visible.size(2) == 1 ? visible : visible.narrow(2, first, some);
      scores.masked_fill_(seen.logical_not(), kHiddenScore);
    }
    parts.push_back(Product(at::softmax(scores, -1).to(values.scalar_type()), own_values));
  }
  return at::cat(parts, 2);
}

}  // namespace linserve
