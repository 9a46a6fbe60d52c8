#include "models/transformers/positions/distances.h"

#include <bit>
#include <cmath>
#include <vector>

#include "attention/rows/aten.h"

namespace linserve::transformers {
namespace {

// Returns the slopes of the first `count` heads of so many, a power of two, or of every other one.
void AddSlopes(int64_t heads, int64_t step, int64_t count, std::vector<float>& slopes) {
  const double start = std::exp2(-8 / static_cast<double>(heads));
  for (int64_t i = 0; i < count; ++i) {
    slopes.push_back(static_cast<float>(std::pow(start, static_cast<double>(1 + i * step))));
  }
}

}  // namespace

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

at::Tensor Alibi(int64_t heads, int64_t longest, const at::TensorOptions& options) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  AddSlopes(power, 1, power, slopes);
  // Where heads are no power of two, further ones lie between those of twice as many.
  AddSlopes(2 * power, 2, heads - power, slopes);
  const at::Tensor away = at::arange(1 - longest, longest, options).abs();
  return at::tensor(slopes).to(options.device()).neg().unsqueeze(1) * away;
}

}  // namespace linserve::transformers
