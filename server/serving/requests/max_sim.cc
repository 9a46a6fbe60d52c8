#include "serving/requests/max_sim.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

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

float MaxSim(const Tensor& query, const Tensor& document) {
  const int64_t width = query.shape()[1];
  const int64_t rows = document.shape()[0];
  if (rows == 0) return kOfNoRows;
  float score = 0;
  for (int64_t token = 0; token < query.shape()[0]; ++token) {
    const float* const own = query.data<float>() + token * width;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t row = 0; row < rows; ++row) {
      largest = std::max(largest, Product(own, document.data<float>() + row * width, width));
    }
    score += largest;
  }
  return score;
}

}  // namespace linserve
