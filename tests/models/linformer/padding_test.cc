#include <gtest/gtest.h>

#include "models/model_fixture.h"

namespace linserve {
namespace {

using LinformerPaddingTest = ModelFixture;

TEST_F(LinformerPaddingTest, GivesALanguageModelTheSameRowsInEveryMode) {
  for (const std::string variant : {"", R"(, "reversible": true, "share_kv": true)",
                                    R"(, "one_kv_head": true, "dim_head": 6)"}) {
    SCOPED_TRACE(variant);
    auto model = Make("linformer.LinformerLM",
                      R"({"num_tokens": 50, "dim": 16, "seq_len": 40, "depth": 2, "k": 8,
                          "heads": 4)" +
                          variant + "}");
    ExpectTheSameInMixes(*model, 20, [&](int64_t length, bool) {
      Item item = Tokens(length, 50);
      item.options.outputs = {"embeddings", "y"};
      return item;
    });
  }
}

TEST_F(LinformerPaddingTest, GivesAStackTheSameRowsInEveryMode) {
  auto model =
      Make("linformer.Linformer", R"({"dim": 16, "seq_len": 40, "depth": 3, "k": 8, "heads": 2})");
  ExpectTheSameInMixes(*model, 20, [&](int64_t length, bool) { return Floats(length, 16); });
}

TEST_F(LinformerPaddingTest, GivesAnAttentionTheSameRowsInEveryMode) {
  auto model =
      Make("linformer.LinformerSelfAttention", R"({"dim": 16, "seq_len": 40, "k": 8, "heads": 4})");
  ExpectTheSameInMixes(*model, 20, [&](int64_t length, bool) { return Floats(length, 16); });
}

TEST_F(LinformerPaddingTest, AContextIsPaddedByItsOwnLength) {
  auto model =
      Make("linformer.LinformerSelfAttention", R"({"dim": 16, "seq_len": 40, "k": 8, "heads": 4})");
  ExpectTheSameInMixes(*model, 20, [&](int64_t length, bool) {
    Item item = Floats(Any(1, 90), 16);  // more queries than seq_len, which is for keys
    item.inputs["context"] = RandomFloats({length, 16});
    return item;
  });
}

TEST_F(LinformerPaddingTest, ZerosComputesPaddingAsThePackageDoesWithPaddedInput) {
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
  // The exact result is something else.
  EXPECT_GT(LargestDifference(zeros, Compute(*model, {item})[0].at("y")), 1e-3);
}

}  // namespace
}  // namespace linserve
