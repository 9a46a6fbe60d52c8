#include <gtest/gtest.h>

#include "models/model_fixture.h"

namespace linserve {
namespace {

using PaddingTest = ModelFixture;

// Hundreds of random mixes of lengths, with those that are easily got wrong among them.
std::vector<std::vector<int64_t>> LengthMixes(std::mt19937_64& random) {
  std::vector<std::vector<int64_t>> mixes = {
      {1}, {kLongestInput}, {1, kLongestInput}, {kLongestInput, 1, kLongestInput}};
  mixes.emplace_back(64, 1);
  std::uniform_int_distribution<int64_t> count(1, 9);
  std::uniform_int_distribution<int64_t> length(1, kLongestInput);
  for (int i = 0; i < 200; ++i) {
    mixes.emplace_back(static_cast<size_t>(count(random)));
    for (int64_t& entry : mixes.back()) entry = length(random);
  }
  return mixes;
}

TEST_F(PaddingTest, GivesALanguageModelTheSameRowsInEveryMode) {
  for (const char* variant : {"", R"(, "reversible": true, "share_kv": true)",
                              R"(, "one_kv_head": true, "dim_head": 6)"}) {
    auto model = Load(Init("linformer.LinformerLM",
                           R"({"num_tokens": 50, "dim": 16, "seq_len": 40, "depth": 2, "k": 8,
                               "heads": 4)" +
                               std::string(variant) + "}"));
    for (const auto& lengths : LengthMixes(random_)) {
      std::vector<Item> items;
      for (int64_t length : lengths) {
        items.push_back(Tokens(length, 50));
        items.back().options.outputs = {"embeddings", "y"};
      }
      const auto packed = Compute(*model, items, Padding::kPacked);
      for (Padding padding : {Padding::kBucket, Padding::kFixed}) {
        const auto padded = Compute(*model, items, padding);
        for (size_t i = 0; i < items.size(); ++i) {
          ASSERT_LT(LargestDifference(packed[i], padded[i]), kTolerance)
              << Name(padding) << ", sequence " << i << " of " << lengths.size();
        }
      }
    }
  }
}

TEST_F(PaddingTest, ASequenceComesOutAsIfItWereAlone) {
  auto model = Load(
      Init("linformer.Linformer", R"({"dim": 16, "seq_len": 40, "depth": 3, "k": 8, "heads": 2})"));
  for (const auto& lengths : LengthMixes(random_)) {
    std::vector<Item> items;
    for (int64_t length : lengths) items.push_back(Floats(length, 16));
    const auto together = Compute(*model, items);
    for (size_t i = 0; i < items.size(); ++i) {
      ASSERT_LT(LargestDifference(together[i], Compute(*model, {items[i]})[0]), kTolerance);
    }
  }
}

TEST_F(PaddingTest, AContextIsPaddedByItsOwnLength) {
  auto model = Load(Init("linformer.LinformerSelfAttention",
                         R"({"dim": 16, "seq_len": 40, "k": 8, "heads": 4})"));
  std::uniform_int_distribution<int64_t> queries(1, 90);  // more than seq_len, which is for keys
  std::uniform_int_distribution<int64_t> keys(1, kLongestInput);
  for (int round = 0; round < 100; ++round) {
    std::vector<Item> items;
    for (int i = 0; i < 4; ++i) {
      items.push_back(Floats(queries(random_), 16));
      items.back().inputs["context"] = RandomFloats({keys(random_), 16});
    }
    const auto packed = Compute(*model, items, Padding::kPacked);
    for (Padding padding : {Padding::kBucket, Padding::kFixed}) {
      const auto padded = Compute(*model, items, padding);
      for (size_t i = 0; i < items.size(); ++i) {
        ASSERT_LT(LargestDifference(packed[i], padded[i]), kTolerance) << Name(padding);
      }
    }
  }
}

TEST_F(PaddingTest, SelfAttentionPadsToSeqLenAtMost) {
  auto model = Load(Init("linformer.LinformerSelfAttention",
                         R"({"dim": 16, "seq_len": 40, "k": 8, "heads": 4})"));
  const std::vector<Item> items = {Floats(kLongestInput, 16), Floats(33, 16)};
  const auto packed = Compute(*model, items, Padding::kPacked);
  for (Padding padding : {Padding::kBucket, Padding::kFixed}) {
    const auto padded = Compute(*model, items, padding);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_LT(LargestDifference(packed[i], padded[i]), kTolerance);
    }
  }
}

TEST_F(PaddingTest, ZerosComputesPaddingAsThePackageDoesWithPaddedInput) {
  auto model = Load(
      Init("linformer.Linformer", R"({"dim": 16, "seq_len": 40, "depth": 2, "k": 8, "heads": 2})"));
  Item item = Floats(10, 16);
  auto [padded, bytes] = Tensor::Allocate(DType::kF32, {kLongestInput, 16});
  std::memcpy(bytes, item.inputs["x"].bytes(), item.inputs["x"].byte_size());
  Item long_item;
  long_item.inputs["x"] = padded;
  const Tensor zeros = Compute(*model, {item}, Padding::kZeros)[0].at("y");
  const Tensor whole = Compute(*model, {long_item})[0].at("y");
  EXPECT_LT(LargestDifference(zeros, whole.Rows(0, 10)), kTolerance);
  // And that is something else than the exact result.
  EXPECT_GT(LargestDifference(zeros, Compute(*model, {item})[0].at("y")), 1e-3);
}

}  // namespace
}  // namespace linserve
