#include "core/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/test_tensors.h"

namespace linserve {
namespace {

// Computes what the standard says that the bits mean, without a trick.
double MeaningOfHalf(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  if (exponent == 31) return mantissa == 0 ? sign * kInfinity : std::nan("");
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(DType, EveryTypeIsFoundByItsName) {
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(Name(dtype)), dtype) << i;
  }
}

TEST(DType, ANameThatIsNoneIsNotFound) {
  EXPECT_EQ(DTypeFromName("F8_E4M3"), std::nullopt);
  EXPECT_EQ(DTypeFromName("f32"), std::nullopt);
  EXPECT_EQ(DTypeFromName(""), std::nullopt);
}

TEST(DType, SizesAndKindsAreThoseOfTheNames) {
  EXPECT_EQ(ByteSize(DType::kBool), 1u);
  EXPECT_EQ(ByteSize(DType::kU8), 1u);
  EXPECT_EQ(ByteSize(DType::kI8), 1u);
  EXPECT_EQ(ByteSize(DType::kI16), 2u);
  EXPECT_EQ(ByteSize(DType::kI32), 4u);
  EXPECT_EQ(ByteSize(DType::kI64), 8u);
  EXPECT_EQ(ByteSize(DType::kF16), 2u);
  EXPECT_EQ(ByteSize(DType::kBF16), 2u);
  EXPECT_EQ(ByteSize(DType::kF32), 4u);
  EXPECT_EQ(ByteSize(DType::kF64), 8u);
  EXPECT_TRUE(IsFloat(DType::kF16) && IsFloat(DType::kBF16) && IsFloat(DType::kF64));
  EXPECT_FALSE(IsFloat(DType::kI64) || IsFloat(DType::kBool));
  EXPECT_TRUE(IsInteger(DType::kU8) && IsInteger(DType::kI64));
  EXPECT_FALSE(IsInteger(DType::kBool) || IsInteger(DType::kF16));
}

TEST(Half, All65536ValuesMeanWhatTheStandardSaysAndRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = HalfToFloat(bits);
    const double meaning = MeaningOfHalf(bits);
    if (std::isnan(meaning)) {
      EXPECT_TRUE(std::isnan(value)) << i;
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << i;
    } else {
      EXPECT_EQ(value, meaning) << i;
      EXPECT_EQ(FloatToHalf(value), bits) << i;
    }
  }
}

TEST(Half, ValuesBetweenTwoNeighboursRoundToTheNearerAndTiesToTheEven) {
  for (uint32_t i = 0; i < 0x7bff; ++i) {  // all finite positive halfs but the largest
    const auto below = static_cast<uint16_t>(i);
    const auto above = static_cast<uint16_t>(i + 1);
    const float middle = (HalfToFloat(below) + HalfToFloat(above)) / 2;  // exact in binary32
    EXPECT_EQ(FloatToHalf(middle), (i & 1) == 0 ? below : above) << i;
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), below) << i;
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, kInfinity)), above) << i;
    EXPECT_EQ(FloatToHalf(-std::nextafter(middle, kInfinity)), above | 0x8000) << i;
  }
}

TEST(Half, ValuesPastTheLargestBecomeInfinite) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(FloatToHalf(kInfinity), 0x7c00);
}

TEST(BFloat16, All65536ValuesRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = BFloat16ToFloat(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(value)))) << i;
    } else {
      EXPECT_EQ(FloatToBFloat16(value), bits) << i;
    }
  }
}

TEST(BFloat16, TiesRoundToTheEvenAndOthersToTheNearer) {
  EXPECT_EQ(BFloat16ToFloat(0x3f80), 1.0f);
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x1.8p-7f), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(std::nextafter(1.0f + 0x1p-8f, 2.0f)), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToBFloat16(-kInfinity), 0xff80);
}

}  // namespace
}  // namespace linserve
