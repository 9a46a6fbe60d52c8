#include "models/transformers/distances.h"

#include <cmath>

#include "attention/rows/aten.h"

namespace linserve::transformers {

at::Tensor ByDistance(const at::Tensor& table, int64_t longest) {
  constexpr int64_t kBucketsOfSide = 16;
  constexpr int64_t kExact = 8;  // nearer ones have a bucket each, further ones by their logarithm
  constexpr double kFar = 128;   // all beyond share the last one
  const at::Tensor distances = at::arange(1 - longest, longest, table.options().dtype(at::kLong));
  const at::Tensor away = distances.abs();
  const at::Tensor logarithm =
      at::log(away.to(at::kFloat) / static_cast<double>(kExact)) / std::log(kFar / kExact);
  const at::Tensor far = (logarithm * (kBucketsOfSide - kExact)).to(at::kLong) + kExact;
  const at::Tensor bucket = at::where(away < kExact, away, far.clamp_max(kBucketsOfSide - 1)) +
                            distances.gt(0).to(at::kLong) * kBucketsOfSide;
  return table.index_select(0, bucket).t().contiguous();
}

}  // namespace linserve::transformers
