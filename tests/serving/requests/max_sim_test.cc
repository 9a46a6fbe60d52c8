#include "serving/requests/max_sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace linserve {
namespace {

float ScoreOf(const Tensor& query, const Tensor& document) {
  MaxSim pair(query, document);
  while (!pair.done()) pair.Advance();
  return pair.score();
}

TEST(MaxSim, IsTheSumOfEachRowsLargestProduct) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const int64_t width : {1, 15, 16, 33, 128}) {
    const auto rows = [&](int64_t count) {
      std::vector<float> values(static_cast<size_t>(count * width));
      std::generate(values.begin(), values.end(), [&] { return normal(random); });
      return Tensor::FromFloats({count, width}, values);
    };
    const Tensor query = rows(5);
    const Tensor document = rows(7);
    double expected = 0;
    for (int64_t i = 0; i < 5; ++i) {
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t j = 0; j < 7; ++j) {
        double product = 0;
        for (int64_t k = 0; k < width; ++k) {
          product += double{query.data<float>()[i * width + k]} *
                     double{document.data<float>()[j * width + k]};
        }
        largest = std::max(largest, product);
      }
      expected += largest;
    }
    EXPECT_NEAR(ScoreOf(query, document), expected, 1e-4);
  }
}

TEST(MaxSim, WithADocumentWithoutRowsIsBelowAllOthers) {
  const Tensor query = Tensor::FromFloats({1, 2}, {1, 0});
  EXPECT_EQ(ScoreOf(query, Tensor::FromFloats({0, 2}, {})), -1e9F);
}

TEST(MaxSim, OfARowThatIsNoNumberIsNone) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const Tensor query = Tensor::FromFloats({2, 1}, {1, 2});
  for (const auto& rows : {std::vector{none, 3.0F}, {3.0F, none}, {none, none}}) {
    EXPECT_TRUE(std::isnan(ScoreOf(query, Tensor::FromFloats({2, 1}, rows))));
  }
}

}  // namespace
}  // namespace linserve
