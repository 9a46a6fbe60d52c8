#include "core/tensor/row_scale.h"

#include <gmock/gmock.h>

namespace linserve {
namespace {

Tensor Int8(const Shape& shape, const std::vector<int8_t>& values) {
  auto [tensor, bytes] = Tensor::Allocate(DType::kI8, shape);
  std::copy(values.begin(), values.end(), reinterpret_cast<int8_t*>(bytes));
  return tensor;
}

TEST(RowScale, GivesTheValuesBack) {
  TensorMap outputs = {{"y", Int8({2, 2}, {127, -1, 2, 0})},
                       {"y_scale", Tensor::FromFloats({2, 1}, {2, 0.5})},
                       {"z", Int8({1}, {5})}};
  ASSERT_TRUE(Dequantize(outputs).ok());
  ASSERT_EQ(outputs.size(), 2U);
  const Tensor& y = outputs.at("y");
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(std::vector<float>(y.data<float>(), y.data<float>() + 4),
              ::testing::ElementsAre(254, -2, 1, 0));
  EXPECT_EQ(outputs.at("z").dtype(), DType::kI8);  // it came without a scale
}

TEST(RowScale, OfOtherRowsIsRefused) {
  TensorMap outputs = {{"y", Int8({2, 2}, {1, 2, 3, 4})},
                       {"y_scale", Tensor::FromFloats({2}, {2, 0.5})}};
  EXPECT_EQ(Dequantize(outputs).message(),
            "output 'y': rows [2, 2] come with scales [2] of type F32, expected F32 [2, 1]");
}

TEST(RowScale, NeedNotBeAskedFor) {
  std::vector<std::string> outputs = {"y_scale", "y", "z_scale"};
  DropScales(outputs);
  EXPECT_THAT(outputs, ::testing::ElementsAre("y", "z_scale"));
}

}  // namespace
}  // namespace linserve
