#include "core/sequence/package_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/sequence/package_results.h"
#include "core/tensor/stacking.h"
#include "support/test_tensors.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Takes x [n], y [m] and optionally mask [2, n, m].
Signature TwoSequences() {
  Signature signature;
  signature.inputs = {
      {.name = "x", .axes = {Axis::Ragged('n')}},
      {.name = "y", .axes = {Axis::Ragged('m')}},
      {.name = "mask",
       .axes = {Axis::Fixed(2), Axis::Ragged('n'), Axis::Ragged('m')},
       .optional = true,
       .batch_axis = BatchAxis::kFolded,
       .broadcast = true},
  };
  signature.outputs = {{"out", {Axis::Ragged('m')}}};
  return signature;
}

// Holds two sequences, x padded to 2 and y to 3.
TensorMap File() {
  return {{"input.x", Tensor::FromFloats({2, 2}, {1, 2, 3, 0})},
          {"input.y", Tensor::FromFloats({2, 3}, {4, 5, 0, 6, 7, 8})},
          {"output.out", Tensor::FromFloats({2, 3}, {0, 0, 0, 0, 0, 0})}};
}

absl::StatusOr<std::vector<Item>> Split(const TensorMap& file) {
  const auto batch = PackageBatch::From(TwoSequences(), file);
  if (!batch.ok()) return batch.status();
  return SplitBatch(TwoSequences(), *batch);
}

TEST(PackageBatch, WithoutLengthsIsCutAsItIs) {
  const auto items = Split(File());
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_THAT(Values(items->at(1).inputs.at("x")), ElementsAre(3, 0));
  EXPECT_THAT(Values(items->at(0).inputs.at("y")), ElementsAre(4, 5, 0));
}

TEST(PackageBatch, HasLengthsForEachAxis) {
  TensorMap file = File();
  file["input.lengths"] = Tensor::FromInts({2}, {2, 1});
  file["input.lengths.m"] = Tensor::FromInts({2}, {2, 3});
  const auto items = Split(file);
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_THAT(Values(items->at(0).inputs.at("x")), ElementsAre(1, 2));
  EXPECT_THAT(Values(items->at(1).inputs.at("x")), ElementsAre(3));
  EXPECT_THAT(Values(items->at(0).inputs.at("y")), ElementsAre(4, 5));
  EXPECT_THAT(Values(items->at(1).inputs.at("y")), ElementsAre(6, 7, 8));
}

TEST(PackageBatch, CropsInnerAxesToo) {
  TensorMap file = File();
  file["input.lengths"] = Tensor::FromInts({2}, {2, 1});
  file["input.lengths.m"] = Tensor::FromInts({2}, {2, 3});
  std::vector<float> scores(24);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i);
  file["input.mask"] = Tensor::FromFloats({4, 2, 3}, scores);
  const auto items = Split(file);
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_THAT(Values(items->at(0).inputs.at("mask")), ElementsAre(0, 1, 3, 4, 6, 7, 9, 10));
  EXPECT_THAT(Values(items->at(1).inputs.at("mask")), ElementsAre(12, 13, 14, 18, 19, 20));
  EXPECT_EQ(items->at(1).inputs.at("mask").shape(), (Shape{2, 1, 3}));
}

TEST(PackageBatch, HoldsNoMoreSequencesThanElements) {
  TensorMap file = File();
  file["input.x"] = Tensor(DType::kF32, {int64_t{1} << 62, 0}, nullptr, nullptr);
  const auto items = Split(file);
  EXPECT_EQ(items.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      items.status().message(),
      HasSubstr("input.x is [4611686018427387904, 0]: its 4611686018427387904 sequences are "
                "empty"));
}

TEST(PackageBatch, RefusesLengthsOfAnAxisThatTheModelDoesNotHave) {
  TensorMap file = File();
  file["input.lengths.q"] = Tensor::FromInts({2}, {2, 1});
  EXPECT_THAT(std::string(Split(file).status().message()), HasSubstr("input.lengths.q"));
}

TEST(PackageBatch, RefusesLengthsThatAreTooLongNamingThem) {
  TensorMap file = File();
  file["input.lengths.m"] = Tensor::FromInts({2}, {2, 4});
  EXPECT_EQ(Split(file).status(),
            absl::InvalidArgumentError("input.lengths.m: sequence 1 has 4, expected 1 to 3"));
}

TEST(PackageBatch, CropsWhatAllSequencesShareOnceForEachLength) {
  Signature signature;
  signature.inputs = {{.name = "x", .axes = {Axis::Ragged('m')}},
                      {.name = "e",
                       .axes = {Axis::Ragged('r'), Axis::Ragged('m')},
                       .batch_axis = BatchAxis::kNone}};
  const TensorMap file = {{"input.x", Tensor::FromFloats({3, 2}, {1, 0, 2, 0, 3, 4})},
                          {"input.e", Tensor::FromFloats({2, 2}, {5, 6, 7, 8})},
                          {"input.lengths", Tensor::FromInts({3}, {1, 1, 2})}};
  const auto batch = PackageBatch::From(signature, file);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->CopiedBytes(signature), 2 * 16);
  const auto items = SplitBatch(signature, *batch);
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_THAT(Values(items->at(0).inputs.at("e")), ElementsAre(5, 7));
  EXPECT_EQ(items->at(0).inputs.at("e").bytes(), items->at(1).inputs.at("e").bytes());
  EXPECT_THAT(Values(items->at(2).inputs.at("e")), ElementsAre(5, 6, 7, 8));
}

TEST(PackageBatch, HintsWhereAnotherAxisIsAsLongAsACroppedOne) {
  TensorMap file = File();
  file["input.lengths"] = Tensor::FromInts({2}, {2, 1});
  const Signature signature = TwoSequences();
  EXPECT_THAT(HintOfPadding(signature, *PackageBatch::From(signature, file)), IsEmpty());
  file["input.y"] = Tensor::FromFloats({2, 2}, {4, 5, 6, 0});
  EXPECT_THAT(HintOfPadding(signature, *PackageBatch::From(signature, file)),
              HasSubstr("give input.lengths.m"));
  file["input.lengths.m"] = Tensor::FromInts({2}, {2, 1});
  EXPECT_THAT(HintOfPadding(signature, *PackageBatch::From(signature, file)), IsEmpty());
}

TEST(JoinBatch, PadsEachOutputToTheLengthOfItsAxis) {
  const std::vector<TensorMap> results = {{{"out", Tensor::FromFloats({1}, {1})}},
                                          {{"out", Tensor::FromFloats({2}, {2, 3})}}};
  const Signature signature = TwoSequences();
  EXPECT_THAT(Values(JoinBatch(signature, results, {{'n', 9}}).at("out")), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(Values(JoinBatch(signature, results, {{'m', 3}}).at("out")),
              ElementsAre(1, 0, 0, 2, 3, 0));
}

TEST(Corner, OfATensorKeepsItsPlaces) {
  const Tensor tensor = Tensor::FromFloats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Values(Corner(tensor, {1, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values(Corner(tensor, {2, 2})), ElementsAre(1, 2, 4, 5));
}

}  // namespace
}  // namespace linserve
