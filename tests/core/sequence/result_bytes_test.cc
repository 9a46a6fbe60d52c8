#include "core/sequence/result_bytes.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

Signature TestSignature() {
  Signature signature;
  signature.inputs = {{.name = "x", .axes = {Axis::Ragged('n'), Axis::Fixed(3)}}};
  signature.outputs = {{.name = "y", .axes = {Axis::Ragged('n'), Axis::Fixed(5)}},
                       {.name = "weights", .axes = {Axis::Ragged('n'), Axis::Ragged('n')}}};
  return signature;
}

const Signature kSignature = TestSignature();

Item Of(const Shape& shape, OutputOptions options = {}) {
  Item item;
  item.inputs["x"] =
      Tensor::FromFloats(shape, std::vector<float>(static_cast<size_t>(ElementCount(shape)), 1.0F));
  item.options = std::move(options);
  return item;
}

TEST(ResultBytes, AreThoseOfTheDefaultOutput) {
  EXPECT_EQ(ResultBytes(kSignature, Of({7, 3})), 7 * 5 * 4);
}

TEST(ResultBytes, OfAVectorAreTheSameWithPooling) {
  Signature signature = kSignature;
  signature.outputs = {{"vector", {Axis::Fixed(4)}}};
  Item item = Of({7, 3});
  EXPECT_EQ(ResultBytes(signature, item), 16);
  item.options.pooling = Pooling::kMean;
  EXPECT_EQ(ResultBytes(signature, item), 16);
}

TEST(ResultBytes, AreThoseOfTheOutputsAskedForInTheirType) {
  EXPECT_EQ(
      ResultBytes(kSignature, Of({7, 3}, {.outputs = {"weights", "y"}, .dtype = DType::kBF16})),
      (7 * 7 + 7 * 5) * 2);
}

TEST(ResultBytes, OfPooledResultsAreThoseOfAVector) {
  EXPECT_EQ(ResultBytes(kSignature, Of({7, 3}, {.outputs = {}, .pooling = Pooling::kMean})), 5 * 4);
}

TEST(ResultBytes, OfWhatIsNoInputAreSomeNumber) {
  EXPECT_EQ(ResultBytes(kSignature, Item{}), 5 * 4);
  EXPECT_EQ(ResultBytes(kSignature, Of({2, 2, 2, 2})), 5 * 4);
  EXPECT_EQ(ResultBytes(kSignature, Of({2})), 5 * 4);
  EXPECT_EQ(ResultBytes(kSignature, Of({7, 3}, {.outputs = {"none"}})), 0);
}

}  // namespace
}  // namespace linserve
