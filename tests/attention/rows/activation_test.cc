#include "attention/rows/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

struct Expected {
  Activation activation;
  std::vector<float> values;  // at -20, -1.5, -0.25, 0, 0.5, 3 and 20
};

// These are the values of transformers 5.24.0 (ACT2FN), and of PyTorch for kElu and kExp.
TEST(Activate, GivesTheValuesOfThePackages) {
  const std::vector<Expected> all = {
      {Activation::kGelu, {0, -0.1002108F, -0.1003234F, 0, 0.3457312F, 2.99595F, 20}},
      {Activation::kTanhGelu, {0, -0.1004284F, -0.1003246F, 0, 0.345714F, 2.996363F, 20}},
      {Activation::kGelu10, {0, -0.1002108F, -0.1003234F, 0, 0.3457312F, 2.99595F, 10}},
      {Activation::kRelu, {0, 0, 0, 0, 0.5F, 3, 20}},
      {Activation::kSilu, {-4.122307e-08F, -0.2736383F, -0.1094559F, 0, 0.3112297F, 2.857722F, 20}},
      {Activation::kQuickGelu, {0, -0.1083378F, -0.09880035F, 0, 0.3503884F, 2.981929F, 20}},
      {Activation::kRelu2, {0, 0, 0, 0, 0.25F, 9, 400}},
      {Activation::kRelu6, {0, 0, 0, 0, 0.5F, 3, 6}},
      {Activation::kSigmoid, {0, 0.1824255F, 0.4378235F, 0.5F, 0.6224593F, 0.9525741F, 1}},
      {Activation::kTanh, {-1, -0.9051483F, -0.2449187F, 0, 0.4621172F, 0.9950548F, 1}},
      {Activation::kElu, {-1, -0.7768698F, -0.2211992F, 0, 0.5F, 3, 20}},
      {Activation::kLeakyRelu, {-0.2F, -0.015F, -0.0025F, 0, 0.5F, 3, 20}},
      {Activation::kMish, {-4.122307e-08F, -0.2980997F, -0.129927F, 0, 0.3752452F, 2.986535F, 20}},
      {Activation::kLaplace, {0, 0, 0.0003458431F, 0.00609446F, 0.2314211F, 1, 1}},
      {Activation::kExp, {0, 0.2231302F, 0.7788008F, 1, 1.648721F, 20.08554F, 4.851652e8F}},
      {Activation::kIdentity, {-20, -1.5F, -0.25F, 0, 0.5F, 3, 20}}};
  ASSERT_EQ(all.size(), static_cast<size_t>(Activation::kIdentity) + 1);
  for (const Expected& expected : all) {
    at::Tensor x = at::zeros({7}, at::kFloat);
    const std::vector<float> points = {-20, -1.5F, -0.25F, 0, 0.5F, 3, 20};
    std::copy(points.begin(), points.end(), x.mutable_data_ptr<float>());
    Activate(expected.activation, x);
    for (size_t i = 0; i < points.size(); ++i) {
      const float value = x.const_data_ptr<float>()[i];
      const float wanted = expected.values[i];
      EXPECT_NEAR(value, wanted, 2e-6F * std::max(1.0F, std::abs(wanted)))
          << static_cast<int>(expected.activation) << " at " << points[i];
      EXPECT_TRUE(value >= 0 || !IsNowhereNegative(expected.activation));
    }
  }
}

}  // namespace
}  // namespace linserve
