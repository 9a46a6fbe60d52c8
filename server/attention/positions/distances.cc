#include "attention/positions/distances.h"

#include <bit>
#include <cmath>
#include <vector>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

// Returns the slopes of the first `count` heads of so many, a power of two, or of every other one.
void AddSlopes(int64_t heads, int64_t step, int64_t count, std::vector<float>& slopes) {
  const double start = std::exp2(-8 / static_cast<double>(heads));
  for (int64_t i = 0; i < count; ++i) {
    slopes.push_back(static_cast<float>(std::pow(start, static_cast<double>(1 + i * step))));
  }
}

}  // namespace

at::Tensor ByDistance(const at::Tensor& table, int64_t longest, int64_t furthest) {
  const int64_t of_side = table.size(0) / 2;
  const int64_t exact = of_side / 2;  // nearer ones have a bucket each, others by their logarithm
  const auto nearest = static_cast<double>(exact);
  const at::Tensor distances = at::arange(1 - longest, longest, table.options().dtype(at::kLong));
  const at::Tensor away = distances.abs();
  const at::Tensor logarithm =
      at::log(away.to(at::kFloat) / nearest) / std::log(static_cast<double>(furthest) / nearest);
  const at::Tensor far = (logarithm * (of_side - exact)).to(at::kLong) + exact;
  const at::Tensor bucket = at::where(away < exact, away, far.clamp_max(of_side - 1)) +
                            distances.gt(0).to(at::kLong) * of_side;
  return table.index_select(0, bucket).t().contiguous();
}

at::Tensor AlibiSlopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  AddSlopes(power, 1, power, slopes);
  // Where heads are no power of two, further ones lie between those of twice as many.
  AddSlopes(2 * power, 2, heads - power, slopes);
  return at::tensor(slopes);
}

at::Tensor Alibi(const at::Tensor& slopes, int64_t longest) {
  const at::Tensor away = at::arange(1 - longest, longest, slopes.options()).abs();
  return slopes.neg().unsqueeze(1) * away;
}

at::Tensor ScoresByDistance(const at::Tensor& distances, int64_t first, int64_t count,
                            int64_t length) {
  const at::Tensor rows = at::arange(length, distances.options().dtype(at::kLong));
  const at::Tensor asked = rows.narrow(0, first, count).unsqueeze(1);
  const at::Tensor places = rows - asked + distances.size(1) / 2;
  return distances.index_select(1, places.flatten()).view({-1, count, length});
}

}  // namespace linserve
