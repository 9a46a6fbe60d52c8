#include "attention/linear/image_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

at::Tensor ContextOf(const at::Tensor& keys, const at::Tensor& values) {
  ImageContext context;
  context.Add(keys, values);
  return context.Sum();
}

TEST(ImageContext, OfOnePositionIsItsValuesForEveryFeature) {
  const at::Tensor values = at::randn({2, 3, 5, 1});
  const at::Tensor context = ContextOf(at::randn({2, 3, 4, 1}), values);
  EXPECT_LT(LargestDifference(context, values.transpose(2, 3).expand({2, 3, 4, 5})), 1e-6);
}

TEST(ImageContext, WeighsTheValuesByTheSoftmaxOverPositions) {
  // Feature 0 has keys 0 and 1, feature 1 keys 2 and 2; values 10 and 20.
  const at::Tensor context =
      ContextOf(Matrix({{0, 1}, {2, 2}}).view({1, 1, 2, 2}), Matrix({{10, 20}}).view({1, 1, 1, 2}));
  const double second = std::exp(1.0) / (1 + std::exp(1.0));
  EXPECT_NEAR(context[0][0][0][0].item<float>(), 10 * (1 - second) + 20 * second, 1e-5);
  EXPECT_NEAR(context[0][0][1][0].item<float>(), 15, 1e-5);
}

TEST(ImageContext, IsTheSameInSlicesHoweverTheKeysDiffer) {
  const at::Tensor keys = at::randn({2, 2, 3, 50}) * 30;
  const at::Tensor values = at::randn({2, 2, 4, 50});
  ImageContext slices;
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 40}, {40, 50}}) {
    slices.Add(keys.narrow(3, begin, end - begin), values.narrow(3, begin, end - begin));
  }
  const at::Tensor exact =
      at::matmul(at::softmax(keys.to(at::kDouble), -1), values.to(at::kDouble).transpose(2, 3));
  EXPECT_LT(LargestDifference(slices.Sum(), exact), 1e-5);
}

TEST(AttendToContext, MixesItByTheSoftmaxOverFeaturesOrByTheQueriesThemselves) {
  const at::Tensor queries = Matrix({{0}, {1}}).view({1, 1, 2, 1});
  const at::Tensor context = Matrix({{10}, {20}}).view({1, 1, 2, 1});
  const double second = std::exp(1.0) / (1 + std::exp(1.0));
  EXPECT_NEAR(AttendToContext(queries, context, true).item<float>(),
              10 * (1 - second) + 20 * second, 1e-5);
  EXPECT_NEAR(AttendToContext(queries, context, false).item<float>(), 20, 1e-5);
}

TEST(AttendToContext, StaysFiniteForLargeNumbersInNarrowTypes) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor large = at::full({1, 1, 2, 3000}, 1e4f).to(type);
    ImageContext context;
    context.Add(large, large);
    context.Add(-large, large);
    const at::Tensor result = AttendToContext(large, context.Sum(), /*normalize=*/true);
    EXPECT_EQ(result.scalar_type(), type);
    EXPECT_LT(LargestDifference(result, large) / 1e4, 0.01);
  }
}

}  // namespace
}  // namespace linserve
