#include "batching/padder_cases.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Takes query [n, 2] and an attention mask [2, n, 3], the first axis of which may be left out.
Signature Masked() {
  Signature signature;
  signature.inputs = {{"query", InputKind::kFloat, {Axis::Ragged('n'), Axis::Fixed(2)}},
                      {.name = "mask",
                       .kind = InputKind::kAttentionMask,
                       .axes = {Axis::Fixed(2), Axis::Ragged('n'), Axis::Fixed(3)},
                       .optional = true,
                       .broadcast = true}};
  return signature;
}

Item Query(int64_t length) {
  Item item;
  item.inputs["query"] = Counting(length, 1);
  return item;
}

Item Image(int64_t height, int64_t width) {
  Item item;
  item.inputs["x"] = Tensor::Allocate(DType::kF32, {3, height, width}).first;
  return item;
}

Signature Images() {
  Signature signature;
  signature.inputs = {
      {"x", InputKind::kFloat, {Axis::Fixed(3), Axis::Ragged('h'), Axis::Ragged('w')}}};
  return signature;
}

TEST(PadderAxes, RepeatAMaskWithoutItsFirstAxisAndHideByMinusInfinity) {
  Item item = Query(2);
  item.inputs["mask"] = *Convert(Tensor::FromInts({2, 3}, {0, 1, 0, 0, 0, 1}), DType::kBool);
  const Batch batch = Padder(Masked(), Padding::kPacked).Pad({&item});
  EXPECT_THAT(batch.inputs.at("mask").shape(), ElementsAre(1, 2, 2, 3));
  EXPECT_THAT(Values(batch.inputs.at("mask")),
              ElementsAre(0, kHidden, 0, 0, 0, kHidden, 0, kHidden, 0, 0, 0, kHidden));
}

TEST(PadderAxes, KeepMasksOfNumbersAsTheyAre) {
  Item item = Query(1);
  item.inputs["mask"] = Tensor::FromFloats({2, 1, 3}, {1, 2, 3, kHidden, 5, 6});
  const Batch batch = Padder(Masked(), Padding::kPacked).Pad({&item});
  EXPECT_THAT(Values(batch.inputs.at("mask")), ElementsAre(1, 2, 3, kHidden, 5, 6));
}

TEST(PadderAxes, ARigidLetterIsNeverPaddedAndSharesNoBatchWithAnotherLength) {
  const auto masked = [](int64_t length) {
    Item item = Query(length);
    item.inputs["mask"] = Tensor::Allocate(DType::kBool, {length, 3}).first;
    return item;
  };
  for (const Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kFixed}) {
    const Padder padder(Masked(), padding);
    EXPECT_EQ(padder.Cost(masked(5)), 5);
    EXPECT_NE(padder.Key(masked(5)), padder.Key(masked(6)));
    const Item item = masked(5);
    EXPECT_EQ(padder.Pad({&item, &item}).axes.at('n').rows, 10);
  }
  // Without the mask nothing holds the letter.
  EXPECT_EQ(Padder(Masked(), Padding::kPacked).Key(Query(5)),
            Padder(Masked(), Padding::kPacked).Key(Query(6)));
}

TEST(PadderAxes, ImagesAreStackedAndCostTheirPixels) {
  const Item item = Image(4, 5);
  const Padder padder(Images(), Padding::kBucket);
  const Batch batch = padder.Pad({&item, &item});
  EXPECT_THAT(batch.inputs.at("x").shape(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(batch.axes, IsEmpty());
  EXPECT_EQ(batch.rows, 40);
  EXPECT_EQ(batch.padding_rows, 0);
  EXPECT_EQ(padder.Cost(item), 20);
  EXPECT_NE(padder.Key(item), padder.Key(Image(5, 4)));
}

TEST(PadderAxes, MasksCostNothing) {
  Signature signature = Simple();
  signature.inputs.push_back({"mask", InputKind::kMask, {Axis::Ragged('p')}, /*optional=*/true});
  Item item = Rows(3);
  item.inputs["mask"] = Tensor::Allocate(DType::kBool, {7}).first;
  EXPECT_EQ(Padder(signature, Padding::kPacked).Cost(item), 3);
  EXPECT_EQ(PackedRows(signature, item), 3);
}

}  // namespace
}  // namespace linserve
