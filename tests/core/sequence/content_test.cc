#include "core/sequence/content.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor/row_scale.h"

namespace linserve {
namespace {

constexpr std::array kFloats = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

class NonfiniteTest : public testing::TestWithParam<DType> {};

TEST_P(NonfiniteTest, IsFoundAtItsFirstPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [value, name] : {std::pair(kInfinity, "Inf"), std::pair(-kInfinity, "-Inf"),
                                    std::pair(kInfinity - kInfinity, "NaN")}) {
    std::vector<float> values(5000, 1);
    values[2502] = values[4000] = value;
    const auto fault = FindNonfinite(*Convert(Tensor::FromFloats({100, 50}, values), GetParam()));
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->position, (Shape{50, 2}));
    EXPECT_EQ(fault->value, name);
    EXPECT_FALSE(FindNonfinite(*Convert(Tensor::FromFloats({3}, {0, -1, 65504}), GetParam())));
  }
}

// What is finite as it is stored may be none as it is read: the bound is where rounding says so.
TEST_P(NonfiniteTest, IsWhatBecomesAnInfinityByRounding) {
  // The largest numbers of F16, BF16 and F32, and what rounds to an infinity in them.
  for (const double bound : {65504., 65520., 65536., 3.3895313892515355e38, 3.3961775292304601e38,
                             3.4028234663852886e38, 3.4028235677973366e38}) {
    for (const double value : {bound, std::nextafter(bound, 0.), std::nextafter(bound, 1e300),
                               double{std::nextafter(static_cast<float>(bound), 0.F)},
                               -double{std::nextafter(static_cast<float>(bound), 3e38F)}}) {
      auto [exact, bytes] = Tensor::Allocate(DType::kF64, {1});
      std::memcpy(bytes, &value, sizeof(value));
      const Tensor stored = *Convert(exact, GetParam());
      for (const DType read_as : {DType::kF16, DType::kBF16, DType::kF32}) {
        const Tensor read = *Convert(*Convert(stored, DType::kF32), read_as);
        EXPECT_EQ(FindNonfinite(stored, read_as).has_value(), FindNonfinite(read).has_value())
            << value << " as " << Name(read_as);
      }
    }
  }
}

TEST_P(NonfiniteTest, MakesAResultAFaultThatNamesTheOutputAndThePlace) {
  const Tensor fine = *Convert(Tensor::FromFloats({2, 2}, {1, 2, 3, 4}), GetParam());
  EXPECT_TRUE(CheckFinite({{"y", fine}}).ok());
  const Tensor infinite = *Convert(Tensor::FromFloats({2, 2}, {1, 2, 3, INFINITY}), GetParam());
  const absl::Status status = CheckFinite({{"other", fine}, {"y", infinite}});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  const std::string message(status.message());
  EXPECT_NE(message.find("output 'y': it holds Inf at position [1, 1]"), std::string::npos);
  EXPECT_EQ(message.find("at most 65504") != std::string::npos, GetParam() == DType::kF16);
}

INSTANTIATE_TEST_SUITE_P(Types, NonfiniteTest, testing::ValuesIn(kFloats),
                         [](const auto& type) { return std::string(Name(type.param)); });

TEST(Nonfinite, ResultsInI8AreSeenByTheirScales) {
  const Tensor steps = *Convert(Tensor::FromInts({1, 2}, {1, 2}), DType::kI8);
  EXPECT_TRUE(CheckFinite({{"y", steps}, {ScaleOf("y"), Tensor::FromFloats({1, 1}, {2})}}).ok());
  EXPECT_FALSE(CheckFinite({{"y", steps}, {ScaleOf("y"), Tensor::FromFloats({1, 1}, {NAN})}}).ok());
}

}  // namespace
}  // namespace linserve
