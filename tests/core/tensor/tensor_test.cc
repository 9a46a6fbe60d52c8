#include "core/tensor/tensor.h"

#include <limits>

#include "support/test_files.h"
#include "support/test_tensors.h"

namespace linserve {
namespace {

using testing::ElementsAre;

constexpr int64_t kLargestSize = std::numeric_limits<int64_t>::max();

std::vector<int64_t> Ints(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  ConvertToInt64(tensor.dtype(), tensor.bytes(), tensor.elements(), values.data());
  return values;
}

TEST(ElementCounts, AreTheProductOfTheSizes) {
  EXPECT_EQ(CheckedElementCount({}), 1);
  EXPECT_EQ(CheckedElementCount({3, 4}), 12);
  EXPECT_EQ(CheckedElementCount({3, 0}), 0);
  EXPECT_EQ(CheckedElementCount({kLargestSize}), kLargestSize);
  EXPECT_EQ(ElementCount({3, 4}), 12);
}

TEST(ElementCounts, RefuseNegativeSizesAndOverflowEvenBesideAZero) {
  EXPECT_EQ(CheckedElementCount({-1}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({-2, -3}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({0, -1}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({kLargestSize, 2}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({int64_t{1} << 32, int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({kLargestSize, 2, 0}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({0, kLargestSize, 2}), std::nullopt);
}

TEST(ElementCounts, InBytesMayOverflowToo) {
  EXPECT_EQ(CheckedByteSize(DType::kF32, {2, 3}), 24);
  EXPECT_EQ(CheckedByteSize(DType::kU8, {kLargestSize}), kLargestSize);
  EXPECT_EQ(CheckedByteSize(DType::kI16, {kLargestSize}), std::nullopt);
  EXPECT_EQ(CheckedByteSize(DType::kU8, {-1}), std::nullopt);
}

TEST(Shapes, AreShownInBracketsAndCutShort) {
  EXPECT_EQ(ToString(Shape{}), "[]");
  EXPECT_EQ(ToString(Shape{3, 64}), "[3, 64]");
  EXPECT_EQ(ToString(Shape(17, 1)),
            "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... of 17 axes]");
}

TEST(Tensors, AreAllocatedFilledWithZeros) {
  const auto [tensor, bytes] = Tensor::Allocate(DType::kI16, {2, 3});
  EXPECT_EQ(tensor.bytes(), bytes);
  EXPECT_EQ(tensor.byte_size(), 12u);
  EXPECT_THAT(Ints(tensor), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Tensors, KeepTheirBytesAliveThroughCopiesAndRows) {
  Tensor rows;
  {
    const Tensor whole = Tensor::FromFloats({3, 2}, {1, 2, 3, 4, 5, 6});
    rows = whole.Rows(1, 3);
    EXPECT_EQ(rows.bytes(), whole.bytes() + 8);
  }
  EXPECT_THAT(rows.shape(), ElementsAre(2, 2));
  EXPECT_THAT(Values(rows), ElementsAre(3, 4, 5, 6));
}

TEST(Tensors, GiveEmptyRowsOfEmptyTensors) {
  const Tensor tensor = Tensor::FromFloats({0, 2}, {});
  EXPECT_THAT(tensor.Rows(0, 0).shape(), ElementsAre(0, 2));
  const Tensor none = Tensor::FromInts({2}, {1, 2}).Rows(1, 1);
  EXPECT_EQ(none.elements(), 0);
}

TEST(Tensors, AreReshapedInPlace) {
  const Tensor tensor = Tensor::FromInts({4}, {1, 2, 3, 4});
  const Tensor square = tensor.Reshaped({2, 2});
  EXPECT_THAT(square.shape(), ElementsAre(2, 2));
  EXPECT_EQ(square.bytes(), tensor.bytes());
}

TEST(Conversions, ReadUnalignedBytes) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(17);
  const double value = -2.5;
  std::memcpy(bytes->data() + 9, &value, sizeof(value));
  EXPECT_THAT(Values(Tensor(DType::kF64, {1}, bytes->data() + 9, bytes)), ElementsAre(-2.5f));
}

TEST(Conversions, OfFloatsGoByWayOfF32) {
  const Tensor source = Tensor::FromFloats({4}, {0.5f, -65504.0f, 0x1p-24f, 3.0f});
  for (DType dtype : {DType::kF16, DType::kF32, DType::kF64}) {
    const auto converted = Convert(source, dtype);
    ASSERT_TRUE(converted.ok());
    EXPECT_EQ(converted->dtype(), dtype);
    EXPECT_THAT(Values(*converted), ElementsAre(0.5f, -65504.0f, 0x1p-24f, 3.0f)) << Name(dtype);
  }
  const auto coarse = Convert(Tensor::FromFloats({2}, {1.0f + 0x1p-8f, 1.5f}), DType::kBF16);
  ASSERT_TRUE(coarse.ok());
  EXPECT_THAT(Values(*coarse), ElementsAre(1.0f, 1.5f));
}

TEST(Conversions, OfIntegersKeepSmallValuesAndTheirSign) {
  const Tensor source = Tensor::FromInts({3}, {-128, 0, 127});
  for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    const auto converted = Convert(source, dtype);
    ASSERT_TRUE(converted.ok());
    EXPECT_EQ(converted->byte_size(), 3 * ByteSize(dtype));
    EXPECT_THAT(Ints(*converted), ElementsAre(-128, 0, 127)) << Name(dtype);
  }
  const auto bytes = Convert(Tensor::FromInts({2}, {255, 1}), DType::kU8);
  ASSERT_TRUE(bytes.ok());
  EXPECT_THAT(Ints(*bytes), ElementsAre(255, 1));
}

TEST(Conversions, ToBoolMakeAnyButZeroTrue) {
  const auto mask = Convert(Tensor::FromInts({4}, {0, 1, 256, -1}), DType::kBool);
  ASSERT_TRUE(mask.ok());
  EXPECT_THAT(Ints(*mask), ElementsAre(0, 1, 1, 1));
}

TEST(Conversions, OfTheSameTypeShareTheBytes) {
  const Tensor source = Tensor::FromFloats({1}, {1});
  EXPECT_EQ(Convert(source, DType::kF32)->bytes(), source.bytes());
}

TEST(Conversions, BetweenFloatsAndIntegersAreRefused) {
  EXPECT_THAT(Convert(Tensor::FromFloats({1}, {1}), DType::kI64), IsInvalid("F32 to I64"));
  EXPECT_THAT(Convert(Tensor::FromInts({1}, {1}), DType::kF16), IsInvalid("I64 to F16"));
}

}  // namespace
}  // namespace linserve
