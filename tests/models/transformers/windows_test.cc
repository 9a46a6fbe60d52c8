// Longformer and BigBird: windows, and tokens that see all and are seen by all.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kLongformer = "transformers.LongformerModel";
constexpr const char* kBigBird = "transformers.BigBirdModel";
constexpr const char* kAsked = "global_attention_mask";
constexpr int64_t kWindowedWords = 30;

std::string WindowedParams(const json& changed) {
  json params = json::parse(R"({
    "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 16, "max_position_embeddings": 42, "type_vocab_size": 1})");
  params.update(changed);
  return params.dump();
}

std::string LongformerParams(const json& changed = json::object()) {
  json params = {{"attention_window", 6}};
  params.update(changed);
  return WindowedParams(params);
}

// In such a model sequences of up to 14 rows have full attention.
std::string BigBirdParams(const json& changed = json::object()) {
  json params = {{"block_size", 2}, {"num_random_blocks", 1}};
  params.update(changed);
  return WindowedParams(params);
}

class WindowsTest : public DeviceModelTest {
 protected:
  // Makes a sequence whose tokens are global with the probability `asked`; -1: nobody asks.
  Item Of(int64_t length, bool masked, double asked = -1) {
    Item item = Tokens(length, kWindowedWords);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    if (asked >= 0) item.inputs[kAsked] = RandomMask(length, asked);
    return item;
  }

  static Tensor RowsOf(Model& model, const Item& item) {
    return Compute(model, {item})[0].at("last_hidden_state");
  }

  static std::string ErrorOf(const char* architecture, const json& changed) {
    return InitError(architecture, WindowedParams(changed));
  }
};

TEST_F(WindowsTest, GiveTheSameRowsInEveryMode) {
  const auto longformer = Make(kLongformer, LongformerParams());
  for (const double asked : {-1.0, 0.0, 0.2, 1.0}) {
    SCOPED_TRACE(asked);
    ExpectTheSameInMixes(*longformer, 6,
                         [&](int64_t length, bool masked) { return Of(length, masked, asked); });
  }
  const auto big_bird = Make(kBigBird, BigBirdParams());
  ExpectTheSameInMixes(*big_bird, 12,
                       [&](int64_t length, bool masked) { return Of(length, masked); });
}

TEST_F(WindowsTest, OnADeviceGiveTheRowsOfTheCpu) {
  for (const bool masked : {false, true}) {
    for (const double asked : {-1.0, 0.0, 0.2}) {
      ExpectTheRowsOfTheCpu(kLongformer, LongformerParams(),
                            [&](int64_t length) { return Of(length, masked, asked); });
    }
    ExpectTheRowsOfTheCpu(kBigBird, BigBirdParams({{"block_size", 1}, {"num_random_blocks", 0}}),
                          [&](int64_t length) { return Of(length, masked); });
  }
}

// Windows are computed some rows at a time there, of more rows than are multiplied at once.
TEST_F(WindowsTest, OfLongSequencesAreOnADeviceAsOnTheCpu) {
  const json longer = {{"max_position_embeddings", 1602}, {"num_hidden_layers", 1}};
  json windowed = longer;
  windowed["attention_window"] = 100;
  json blocked = longer;
  blocked["block_size"] = 48;
  const auto expect = [&](const char* architecture, const json& params, double asked) {
    SCOPED_TRACE(architecture);
    const std::string directory = Directory(architecture, WindowedParams(params));
    const Item item = Of(1600, /*masked=*/true, asked);
    const Tensor expected = RowsOf(*Load(directory), item);
    const auto model = LoadOn("simulated:0", directory, "f32");
    EXPECT_LT(LargestDifference(RowsOf(*model, item), expected), 1e-4);
  };
  expect(kLongformer, windowed, -1);
  expect(kLongformer, windowed, 0.2);
  expect(kBigBird, blocked, -1);
}

TEST_F(WindowsTest, AreSeenThroughByGlobalTokensAlone) {
  const auto model = Make(kLongformer, LongformerParams({{"num_hidden_layers", 1}}));
  for (const bool asked : {false, true}) {
    Item item = Tokens(40, kWindowedWords);
    std::vector<int64_t> ids(40, 7);
    item.inputs["x"] = Tensor::FromInts({40}, ids);
    item.inputs[kAsked] = asked ? MaskOf(40, 20, 21) : MaskOf(40, 0, 0);
    const Tensor before = RowsOf(*model, item);
    ids[20] = 8;
    item.inputs["x"] = Tensor::FromInts({40}, ids);
    const Tensor after = RowsOf(*model, item);
    EXPECT_GT(LargestDifference(before.Rows(17, 18), after.Rows(17, 18)), kTolerance);
    EXPECT_EQ(LargestDifference(before.Rows(16, 17), after.Rows(16, 17)) > kTolerance, asked);
    EXPECT_EQ(LargestDifference(before.Rows(39, 40), after.Rows(39, 40)) > kTolerance, asked);
    ids[3] = 9;
    item.inputs["x"] = Tensor::FromInts({40}, ids);
    const Tensor far = RowsOf(*model, item);
    EXPECT_EQ(LargestDifference(after.Rows(20, 21), far.Rows(20, 21)) > kTolerance, asked);
  }
}

TEST_F(WindowsTest, AreNotWhatAMaskThatMakesAllTokensGlobalGives) {
  const auto model = Make(kLongformer, LongformerParams());
  Item item = Tokens(30, kWindowedWords);
  const Tensor none = RowsOf(*model, item);
  item.inputs[kAsked] = MaskOf(30, 0, 0);
  EXPECT_LT(LargestDifference(RowsOf(*model, item), none), kTolerance);
  item.inputs[kAsked] = MaskOf(30, 0, 30);
  EXPECT_GT(LargestDifference(RowsOf(*model, item), none), 1e-3);
}

TEST_F(WindowsTest, OfAClassifierHaveAGlobalFirstTokenUnlessItIsAskedForOthers) {
  const auto model = Make("transformers.LongformerForSequenceClassification",
                          LongformerParams({{"num_labels", 3}}));
  Item item = Tokens(30, kWindowedWords);
  const auto scores = [&](const Tensor& asked) {
    item.inputs[kAsked] = asked;
    return Compute(*model, {item})[0].at("logits");
  };
  const Tensor usual = Compute(*model, {item})[0].at("logits");
  EXPECT_LT(LargestDifference(scores(MaskOf(30, 0, 1)), usual), kTolerance);
  EXPECT_GT(LargestDifference(scores(MaskOf(30, 0, 0)), usual), 1e-4);
}

TEST_F(WindowsTest, AreForBigBirdWhereASequenceIsLongerThanWhatItSees) {
  const auto sparse = Make(kBigBird, BigBirdParams());
  const auto full = Make(kBigBird, BigBirdParams({{"attention_type", "original_full"}}));
  for (const int64_t length : {1, 13, 14, 15, 40}) {
    const Item item = Of(length, /*masked=*/false);
    EXPECT_EQ(LargestDifference(RowsOf(*sparse, item), RowsOf(*full, item)) > kTolerance,
              length > 14)
        << length;
  }
}

TEST_F(WindowsTest, AreCloseToFloat32InAllTypes) {
  for (const char* architecture : {kLongformer, kBigBird}) {
    const bool asks = architecture == kLongformer;
    const std::string directory =
        Directory(architecture, asks ? LongformerParams() : BigBirdParams());
    const Item item = Of(40, /*masked=*/false, asks ? 0.2 : -1);
    const Tensor exact = RowsOf(*Load(directory), item);
    for (const std::string& type : TypesOfCpu()) {
      EXPECT_GE(SmallestCosine(RowsOf(*Load(directory, {.dtype = type}), item), exact), 0.99)
          << architecture << " in " << type;
    }
  }
}

TEST_F(WindowsTest, ThatCannotBeAreRefusedByName) {
  for (const json& window : {json(5), json(0), json({4, 3})}) {
    EXPECT_THAT(ErrorOf(kLongformer, {{"attention_window", window}}),
                HasSubstr("even numbers of at least 2"))
        << window;
  }
  EXPECT_THAT(ErrorOf(kLongformer, {{"attention_window", {4, 4, 4}}}),
              HasSubstr("as many numbers as num_hidden_layers = 2"));
  EXPECT_THAT(ErrorOf(kBigBird, {{"attention_type", "sparse"}}), HasSubstr("block_sparse"));
  EXPECT_THAT(ErrorOf(kBigBird, {{"is_decoder", true}}), HasSubstr("only encoders are computed"));
}

}  // namespace
}  // namespace linserve
