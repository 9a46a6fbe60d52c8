#include "serving/requests/max_sim.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace linserve {
namespace {

constexpr float kOfNoRows = -1e9F;  // as in sentence-transformers
constexpr int64_t kLanes = 16;      // sums that are made at a time, as processors do

float Product(const float* a, const float* b, int64_t width) {
  std::array<float, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[static_cast<size_t>(lane)] += a[i + lane] * b[i + lane];
    }
  }
  float sum = std::reduce(sums.begin(), sums.end());
  for (; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

MaxSim::MaxSim(Tensor query, Tensor document)
    : query_(std::move(query)), document_(std::move(document)) {
  if (document_.shape()[0] > 0) return;
  score_ = kOfNoRows;
  row_ = query_.shape()[0];
}

void MaxSim::Advance() {
  const int64_t width = query_.shape()[1];
  const float* const own = query_.data<float>() + row_ * width;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < document_.shape()[0]; ++row) {
    const float product = Product(own, document_.data<float>() + row * width, width);
    if (product > largest || std::isnan(product)) largest = product;  // NaN stays
  }
  score_ += largest;
  ++row_;
}

}  // namespace linserve
