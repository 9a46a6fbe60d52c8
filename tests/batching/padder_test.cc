#include "batching/padder.h"

#include "batching/padder_cases.h"

namespace linserve {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(PackedPadding, LaysSequencesOneAfterAnother) {
  const Item a = Rows(2, 10);
  const Item b = Rows(1, 20);
  const Item c = Rows(3, 30);
  const Batch batch = Padder(Simple(), Padding::kPacked).Pad({&a, &b, &c});
  const AxisLayout& layout = batch.axes.at('n');
  EXPECT_THAT(layout.starts, ElementsAre(0, 2, 3));
  EXPECT_THAT(layout.lengths, ElementsAre(2, 1, 3));
  EXPECT_EQ(layout.rows, 6);
  EXPECT_EQ(layout.padded_length, 0);
  EXPECT_EQ(batch.padding, Padding::kPacked);
  EXPECT_EQ(batch.padding_rows, 0);
  EXPECT_THAT(batch.inputs.at("x").shape(), ElementsAre(6, 2));
  EXPECT_THAT(Values(batch.inputs.at("x")),
              ElementsAre(10, 11, 12, 13, 20, 21, 30, 31, 32, 33, 34, 35));
}

TEST(BucketPadding, PadsToTheSmallestBucketThatHoldsTheSequence) {
  const Padder padder(Simple(), Padding::kBucket, {3, 5});
  const Item a = Rows(3, 10);
  const Item b = Rows(1, 20);
  const Batch batch = padder.Pad({&a, &b});
  const AxisLayout& layout = batch.axes.at('n');
  EXPECT_THAT(layout.starts, ElementsAre(0, 3));
  EXPECT_THAT(layout.lengths, ElementsAre(3, 1));
  EXPECT_EQ(layout.rows, 6);
  EXPECT_EQ(layout.padded_length, 3);
  EXPECT_EQ(batch.padding_rows, 2);
  EXPECT_THAT(Values(batch.inputs.at("x")),
              ElementsAre(10, 11, 12, 13, 14, 15, 20, 21, 0, 0, 0, 0));
}

TEST(BucketPadding, PadsPastTheLastBucketToTheLongest) {
  const Padder padder(Simple(/*longest=*/40), Padding::kBucket, {4, 8});
  EXPECT_EQ(padder.Cost(Rows(4)), 4);
  EXPECT_EQ(padder.Cost(Rows(5)), 8);
  EXPECT_EQ(padder.Cost(Rows(9)), 40);
}

TEST(BucketPadding, PadsPastTheLastBucketToADefaultOneIfThereIsNoLongest) {
  EXPECT_EQ(Padder(Simple(), Padding::kBucket, {4, 8}).Cost(Rows(9)), 16);
}

TEST(BucketPadding, NeverPadsToMoreThanTheLongest) {
  const Padder padder(Simple(/*longest=*/20), Padding::kBucket, {8, 64});
  EXPECT_EQ(padder.Cost(Rows(9)), 20);
  EXPECT_EQ(Padder(Simple(20), Padding::kBucket).Cost(Rows(17)), 20);
}

TEST(BucketPadding, HasPowersOfTwoAndTheirHalvesAsDefault) {
  const Padder padder(Simple(), Padding::kBucket);
  const std::vector<std::pair<int64_t, int64_t>> cases = {
      {1, 16},  {16, 16}, {17, 24}, {24, 24},   {25, 32},   {32, 32},
      {33, 48}, {48, 48}, {49, 64}, {512, 512}, {513, 768}, {769, 1024}};
  for (const auto& [length, bucket] : cases) EXPECT_EQ(padder.Cost(Rows(length)), bucket) << length;
}

TEST(BucketPadding, LetsOnlySequencesOfTheSameBucketShareABatch) {
  const Padder padder(Simple(), Padding::kBucket);
  EXPECT_EQ(padder.Key(Rows(17)), padder.Key(Rows(24)));
  EXPECT_NE(padder.Key(Rows(16)), padder.Key(Rows(17)));
}

TEST(FixedPadding, PadsToTheLongestThatTheModelTakes) {
  for (const Padding padding : {Padding::kFixed, Padding::kZeros}) {
    const Item a = Rows(2, 10);
    const Item b = Rows(3, 20);
    const Padder padder(Simple(/*longest=*/4), padding);
    EXPECT_EQ(padder.Key(a), padder.Key(b));
    const Batch batch = padder.Pad({&a, &b});
    EXPECT_EQ(batch.padding, padding);
    EXPECT_THAT(batch.axes.at('n').starts, ElementsAre(0, 4));
    EXPECT_EQ(batch.axes.at('n').padded_length, 4);
    EXPECT_THAT(Values(batch.inputs.at("x")),
                ElementsAre(10, 11, 12, 13, 0, 0, 0, 0, 20, 21, 22, 23, 24, 25, 0, 0));
  }
}

// Without such groups a sequence would be padded, and with kZeros computed, by what its neighbours
// are.
TEST(FixedPadding, GroupsByBucketIfTheModelHasNoLongest) {
  for (const Padding padding : {Padding::kFixed, Padding::kZeros}) {
    const Padder padder(Simple(), padding);
    EXPECT_EQ(padder.Cost(Rows(5)), 16);
    EXPECT_EQ(padder.Key(Rows(5)), padder.Key(Rows(16)));
    EXPECT_NE(padder.Key(Rows(5)), padder.Key(Rows(40)));
  }
}

TEST(Padder, HoldsToALimitOnlyWhereItApplies) {
  Signature signature = TwoInputs();
  signature.limits = {{'n', 6, "context"}, {'n', 9, ""}};
  const Padder padder(signature, Padding::kFixed);
  EXPECT_EQ(padder.Cost(Rows(2)), 6);
  // Here n is padded to 9, and m, which has no limit, to a bucket.
  EXPECT_EQ(padder.Cost(WithContext(Rows(2), 3)), 9 + 16);
}

TEST(Padder, ConvertsEveryFloatTypeToF32) {
  const std::vector<float> values = {0.5F, -2, 1024, 0.25F};
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    Item item;
    item.inputs["x"] = *Convert(Tensor::FromFloats({2, 2}, values), dtype);
    const Batch batch = Padder(Simple(), Padding::kPacked).Pad({&item});
    EXPECT_EQ(batch.inputs.at("x").dtype(), DType::kF32);
    EXPECT_THAT(Values(batch.inputs.at("x")), testing::ElementsAreArray(values)) << Name(dtype);
  }
}

TEST(Padder, ConvertsEveryIntegerTypeOfTokensToI64) {
  Signature signature;
  signature.inputs = {{"ids", InputKind::kToken, {Axis::Ragged('n')}, false, 100}};
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    Item item;
    item.inputs["ids"] = *Convert(Tensor::FromInts({3}, {7, 0, 99}), dtype);
    const Batch batch = Padder(signature, Padding::kBucket, {4}).Pad({&item});
    const Tensor& ids = batch.inputs.at("ids");
    EXPECT_EQ(ids.dtype(), DType::kI64);
    EXPECT_THAT(ids.shape(), ElementsAre(4));
    EXPECT_THAT(std::vector<int64_t>(ids.data<int64_t>(), ids.data<int64_t>() + 4),
                ElementsAre(7, 0, 99, 0))
        << Name(dtype);
  }
}

TEST(Padder, CopiesMasksByteByByte) {
  Signature signature = Simple();
  signature.inputs.push_back({"mask", InputKind::kMask, {Axis::Ragged('n')}});
  Item item = Rows(3);
  item.inputs["mask"] = *Convert(Tensor::FromInts({3}, {1, 0, 1}), DType::kBool);
  const Batch batch = Padder(signature, Padding::kBucket, {5}).Pad({&item, &item});
  const Tensor& mask = batch.inputs.at("mask");
  EXPECT_EQ(mask.dtype(), DType::kBool);
  EXPECT_THAT(std::vector<uint8_t>(mask.data<uint8_t>(), mask.data<uint8_t>() + 10),
              ElementsAre(1, 0, 1, 0, 0, 1, 0, 1, 0, 0));
}

TEST(Padder, LaysOutEachLetterByItself) {
  const Item a = WithContext(Rows(1, 10), 3);
  const Item b = WithContext(Rows(2, 20), 1);
  const Batch batch = Padder(TwoInputs(), Padding::kPacked).Pad({&a, &b});
  EXPECT_THAT(batch.axes.at('n').starts, ElementsAre(0, 1));
  EXPECT_THAT(batch.axes.at('m').starts, ElementsAre(0, 3));
  EXPECT_THAT(batch.inputs.at("x").shape(), ElementsAre(3, 2));
  EXPECT_THAT(batch.inputs.at("context").shape(), ElementsAre(4, 2));
  EXPECT_EQ(batch.rows, 7);
}

TEST(Padder, LeavesOutOptionalInputsThatNoneOfTheSequencesHas) {
  const Item item = Rows(2);
  const Padder padder(TwoInputs(), Padding::kPacked);
  const Batch batch = padder.Pad({&item});
  EXPECT_FALSE(batch.inputs.contains("context"));
  EXPECT_FALSE(batch.axes.contains('m'));
  EXPECT_NE(padder.Key(item), padder.Key(WithContext(item, 2)));
}

TEST(Padder, StacksInputsOfAFixedShape) {
  Signature signature = Simple();
  signature.inputs.push_back({"image", InputKind::kFloat, {Axis::Fixed(2), Axis::Fixed(1)}});
  signature.inputs.push_back({"scale", InputKind::kFloat, {}});
  std::vector<Item> items = {Rows(1), Rows(3)};
  items[0].inputs["image"] = Tensor::FromFloats({2, 1}, {1, 2});
  items[0].inputs["scale"] = Tensor::FromFloats({}, {7});
  items[1].inputs["image"] = Tensor::FromFloats({2, 1}, {3, 4});
  items[1].inputs["scale"] = Tensor::FromFloats({}, {8});
  const Batch batch = Padder(signature, Padding::kBucket).Pad({&items[0], &items[1]});
  EXPECT_THAT(batch.inputs.at("image").shape(), ElementsAre(2, 2, 1));
  EXPECT_THAT(Values(batch.inputs.at("image")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batch.inputs.at("scale").shape(), ElementsAre(2));
  EXPECT_THAT(Values(batch.inputs.at("scale")), ElementsAre(7, 8));
}

TEST(Padder, CountsASequenceWithoutLetteredAxesAsOneRow) {
  Signature signature;
  signature.inputs = {{"image", InputKind::kFloat, {Axis::Fixed(2)}}};
  Item item;
  item.inputs["image"] = Tensor::FromFloats({2}, {1, 2});
  const Padder padder(signature, Padding::kFixed);
  EXPECT_EQ(padder.Cost(item), 1);
  EXPECT_THAT(padder.Pad({&item, &item}).axes, IsEmpty());
}

TEST(Padder, PadsMasks) {
  Signature signature = Simple();
  signature.inputs.push_back({"mask", InputKind::kMask, {Axis::Ragged('n')}});
  signature.inputs.push_back({"hidden", InputKind::kAttentionMask, {Axis::Ragged('n')}});
  const Tensor mask = *Convert(Tensor::FromInts({5}, {1, 0, 0, 1, 1}), DType::kBool);
  Item item = Rows(5);
  item.inputs["mask"] = mask;
  item.inputs["hidden"] = mask;
  const Batch batch = Padder(signature, Padding::kBucket, {8}).Pad({&item});
  const auto* values = batch.inputs.at("mask").data<bool>();
  EXPECT_THAT(std::vector<bool>(values, values + 8),
              ElementsAre(true, false, false, true, true, false, false, false));
  EXPECT_THAT(Values(batch.inputs.at("hidden")),
              ElementsAre(kHidden, 0, 0, kHidden, kHidden, 0, 0, 0));
}

TEST(Padder, KeepsTheOptionsOfEachSequence) {
  Item a = Rows(1);
  Item b = Rows(1);
  b.options.pooling = Pooling::kMean;
  const Batch batch = Padder(Simple(), Padding::kPacked).Pad({&a, &b});
  EXPECT_THAT(batch.options, ElementsAre(a.options, b.options));
}

// Tries random mixes of lengths, in every mode, by seed.
class PadderProperty
    : public testing::TestWithParam<std::tuple<Padding, std::vector<int64_t>, int64_t>> {
 protected:
  static constexpr int kSeeds = 100;
  const Padding padding_ = std::get<0>(GetParam());
  const Padder padder_{TwoInputs(std::get<2>(GetParam())), padding_, std::get<1>(GetParam())};
};

TEST_P(PadderProperty, CropGivesBackWhatWasPadded) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (const std::vector<Item>& items : ByKey(padder_, RandomItems(seed))) {
      const Batch batch = padder_.Pad(Pointers(items));
      ASSERT_EQ(batch.size(), items.size());
      for (const auto& [name, letter] : {std::pair("x", 'n'), std::pair("context", 'm')}) {
        if (!items[0].inputs.contains(name)) continue;
        for (size_t i = 0; i < items.size(); ++i) {
          const Tensor& given = items[i].inputs.at(name);
          const Tensor back = Crop(batch.axes.at(letter), batch.inputs.at(name), i);
          ASSERT_EQ(back.shape(), given.shape()) << "seed " << seed;
          ASSERT_EQ(Values(back), Values(given)) << "seed " << seed;
        }
      }
    }
  }
}

TEST_P(PadderProperty, FillsWhatIsNoSequenceWithZeros) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (const std::vector<Item>& items : ByKey(padder_, RandomItems(seed))) {
      const Batch batch = padder_.Pad(Pointers(items));
      const AxisLayout& layout = batch.axes.at('n');
      for (size_t i = 0; i < items.size() && layout.padded_length > 0; ++i) {
        const int64_t begin = layout.starts[i] + layout.lengths[i];
        const int64_t end = layout.starts[i] + layout.padded_length;
        ASSERT_THAT(Values(batch.inputs.at("x").Rows(begin, end)), Each(0)) << "seed " << seed;
      }
    }
  }
}

TEST_P(PadderProperty, CostIsWhatTheBatchComputes) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (const std::vector<Item>& items : ByKey(padder_, RandomItems(seed))) {
      int64_t cost = 0;
      for (const Item& item : items) cost += padder_.Cost(item);
      ASSERT_EQ(cost, padder_.Pad(Pointers(items)).rows) << "seed " << seed;
    }
  }
}

class ReadNothing : public SessionState {
 public:
  int64_t position() const override { return 0; }
  int64_t bytes() const override { return 0; }
};

TEST(ChunksOfSessions, ArePackedWhateverThePaddingIs) {
  for (Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kFixed, Padding::kZeros}) {
    const Padder padder(Simple(/*longest=*/20), padding);
    Item a = Rows(2);
    Item b = Rows(5);
    a.session = std::make_shared<ReadNothing>();
    b.session = std::make_shared<ReadNothing>();
    EXPECT_EQ(padder.Key(a), padder.Key(b));
    EXPECT_NE(padder.Key(a), padder.Key(Rows(2)));
    EXPECT_EQ(padder.Cost(b), 5);
    const Batch batch = padder.Pad({&a, &b});
    EXPECT_EQ(batch.padding, Padding::kPacked);
    EXPECT_EQ(batch.rows, 7);
    EXPECT_EQ(batch.axes.at('n').rows, 7);
    EXPECT_THAT(batch.sessions, ElementsAre(a.session, b.session));
  }
}

std::string ModeName(const testing::TestParamInfo<PadderProperty::ParamType>& mode) {
  const auto& [padding, buckets, longest] = mode.param;
  return std::string(Name(padding)) + (buckets.empty() ? "" : "_custom") +
         (longest > 0 ? "_limited" : "");
}

INSTANTIATE_TEST_SUITE_P(Modes, PadderProperty,
                         testing::Combine(testing::Values(Padding::kPacked, Padding::kBucket,
                                                          Padding::kFixed, Padding::kZeros),
                                          testing::Values(std::vector<int64_t>{},
                                                          std::vector<int64_t>{1, 7, 20}),
                                          testing::Values(0, kLongest)),
                         ModeName);

}  // namespace
}  // namespace linserve
