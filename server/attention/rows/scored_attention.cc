#include "attention/rows/scored_attention.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attention/rows/aten.h"

namespace linserve {

at::Tensor ScoresOfVisible(const at::Tensor& visible, at::ScalarType scores) {
  constexpr double kHidden = -1e30;
  constexpr double kHiddenInF16 = -6e4;  // which has no number that is less
  return at::where(visible, 0.0, scores == at::kHalf ? kHiddenInF16 : kHidden);
}

at::Tensor AttendByParts(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, double scale, int64_t matrices,
                         const std::function<at::Tensor(int64_t, int64_t)>& added) {
  constexpr int64_t kPairsAtOnce = int64_t{1} << 24;
  const int64_t length = queries.size(2);
  const int64_t most =
      matrices == 0 ? length : std::max<int64_t>(1, kPairsAtOnce / (matrices * length));
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

}  // namespace linserve
