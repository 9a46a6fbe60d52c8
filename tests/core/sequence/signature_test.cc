#include "core/sequence/signature.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

// Takes x [n, 2] and optionally context [m, 2], attention mask [n, m], steps [3].
Signature CrossAttention() {
  Signature signature;
  signature.inputs = {
      {"x", InputKind::kFloat, {Axis::Ragged('n'), Axis::Fixed(2)}},
      {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(2)}, true},
      {"mask", InputKind::kMask, {Axis::Ragged('n'), Axis::Ragged('m')}, true},
      {"steps", InputKind::kFloat, {Axis::Fixed(3)}, true},
  };
  signature.outputs = {{"y", {Axis::Ragged('n'), Axis::Fixed(2)}},
                       {"weights", {Axis::Ragged('n'), Axis::Ragged('m')}}};
  return signature;
}

Item OfLength(int64_t n) { return {{{"x", Tensor::Allocate(DType::kF32, {n, 2}).first}}, {}}; }

Item WithContext(int64_t n, int64_t m) {
  Item item = OfLength(n);
  item.inputs["context"] = Tensor::Allocate(DType::kF32, {m, 2}).first;
  return item;
}

TEST(Signature, ShowsAxesByLetterOrNumber) {
  EXPECT_EQ(ToString({Axis::Ragged('n'), Axis::Fixed(64)}), "[n, 64]");
  EXPECT_EQ(ToString(std::vector<Axis>{}), "[]");
}

TEST(Signature, FindsInputsAndOutputsByName) {
  const Signature signature = CrossAttention();
  EXPECT_EQ(signature.FindInput("context"), &signature.inputs[1]);
  EXPECT_EQ(signature.FindInput("y"), nullptr);
  EXPECT_EQ(signature.FindOutput("weights"), &signature.outputs[1]);
  EXPECT_EQ(signature.FindOutput("x"), nullptr);
}

TEST(LongestFor, IsTheSmallestLimitThatHoldsForTheItem) {
  Signature signature = CrossAttention();
  EXPECT_EQ(LongestFor(signature, OfLength(3), 'n'), 0);
  signature.limits = {{'n', 50, "context"}};
  EXPECT_EQ(LongestFor(signature, OfLength(3), 'n'), 50);
  EXPECT_EQ(LongestFor(signature, WithContext(3, 5), 'n'), 0);
  signature.limits = {{'n', 50, "context"}, {'n', 200, ""}, {'n', 100, ""}, {'m', 7, ""}};
  EXPECT_EQ(LongestFor(signature, OfLength(3), 'n'), 50);
  EXPECT_EQ(LongestFor(signature, WithContext(3, 5), 'n'), 100);
  EXPECT_EQ(LongestFor(signature, WithContext(3, 5), 'm'), 7);
}

TEST(LengthOf, IsThatOfAnyInputThatHasTheLetter) {
  const Signature signature = CrossAttention();
  EXPECT_EQ(LengthOf(signature, WithContext(3, 5), 'n'), 3);
  EXPECT_EQ(LengthOf(signature, WithContext(3, 5), 'm'), 5);
  EXPECT_EQ(LengthOf(signature, OfLength(3), 'm'), 0);
  EXPECT_EQ(LengthOf(signature, OfLength(3), 'k'), 0);
  Item masked = OfLength(3);
  masked.inputs["mask"] = Tensor::Allocate(DType::kBool, {3, 4}).first;
  EXPECT_EQ(LengthOf(signature, masked, 'm'), 4);
}

TEST(PackedRows, CountEachLetterOnce) {
  const Signature signature = CrossAttention();
  EXPECT_EQ(PackedRows(signature, OfLength(3)), 3);
  EXPECT_EQ(PackedRows(signature, WithContext(3, 5)), 8);
  Item item = WithContext(3, 5);
  item.inputs["mask"] = Tensor::Allocate(DType::kBool, {3, 5}).first;
  item.inputs["steps"] = Tensor::Allocate(DType::kF32, {3}).first;
  EXPECT_EQ(PackedRows(signature, item), 8);
}

TEST(BatchKey, DependsOnTheInputsButNotOnTheirLengths) {
  const Signature signature = CrossAttention();
  EXPECT_EQ(BatchKey(signature, OfLength(3)), BatchKey(signature, OfLength(4)));
  EXPECT_EQ(BatchKey(signature, WithContext(3, 5)), BatchKey(signature, WithContext(4, 6)));
  EXPECT_NE(BatchKey(signature, OfLength(3)), BatchKey(signature, WithContext(3, 5)));
}

TEST(BatchKey, DependsOnTheOutputsThatAreAsked) {
  const Signature signature = CrossAttention();
  const auto key = [&](std::vector<std::string> outputs) {
    Item item = OfLength(3);
    item.options.outputs = std::move(outputs);
    return BatchKey(signature, item);
  };
  EXPECT_EQ(key({}), key({"y"}));
  EXPECT_EQ(key({"y", "weights"}), key({"weights", "y", "y"}));
  EXPECT_NE(key({"y"}), key({"weights"}));
  EXPECT_NE(key({"y"}), key({"y", "weights"}));
}

TEST(BatchKey, DoesNotDependOnWhatIsDoneToEachSequenceAlone) {
  const Signature signature = CrossAttention();
  Item item = OfLength(3);
  item.options.pooling = Pooling::kMean;
  item.options.normalize = true;
  item.options.dtype = DType::kF16;
  EXPECT_EQ(BatchKey(signature, item), BatchKey(signature, OfLength(3)));
}

}  // namespace
}  // namespace linserve
