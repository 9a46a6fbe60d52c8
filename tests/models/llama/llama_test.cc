// Llama's kin: models whose rows depend on earlier ones alone, and those whose rows see all others.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int64_t kLlamaWords = 30;
constexpr const char* kQwen3 = "transformers.Qwen3Model";
constexpr const char* kGemma2 = "transformers.Gemma2Model";
constexpr const char* kGemma3 = "transformers.Gemma3TextModel";
constexpr const char* kEuroBert = "transformers.EuroBertModel";

// Norms of heads with large weights, as random ones are, magnify what is rounded.
constexpr double kLeastInBf16 = 0.99;

struct LlamaKind {
  const char* architecture;
  json params = json::object();
};

// Returns arguments of a small model, but for these.
std::string LlamaParams(const json& changed = json::object()) {
  json params = json::parse(R"({
    "vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 48,
    "max_position_embeddings": 42})");
  params.update(changed);
  return params.dump();
}

std::vector<LlamaKind> LlamaKinds() {
  const json windows = {
      {"use_sliding_window", true}, {"sliding_window", 5}, {"max_window_layers", 1}};
  const json gemma = {{"use_bidirectional_attention", true},
                      {"sliding_window", 8},
                      {"query_pre_attn_scalar", 150},
                      {"sliding_window_pattern", 2}};
  const json smol = {
      {"no_rope_layer_interval", 2}, {"use_sliding_window", true}, {"sliding_window", 5}};
  return {{"transformers.LlamaModel", {{"num_key_value_heads", 4}, {"mlp_bias", true}}},
          {"transformers.MistralModel", {{"sliding_window", 6}}},
          {"transformers.Qwen2Model", {{"num_key_value_heads", 1}}},
          {kQwen3, {{"attention_bias", true}}},
          {kQwen3, windows},
          {kQwen3, {{"is_causal", false}}},
          {"transformers.GemmaModel"},
          {kGemma2,
           {{"sliding_window", 6}, {"query_pre_attn_scalar", 2}, {"attn_logit_softcapping", 2}}},
          {kGemma2, {{"is_causal", false}, {"sliding_window", 4}}},
          {kGemma3, gemma},
          {kGemma3, {{"sliding_window", 8}, {"sliding_window_pattern", 2}}},
          {"transformers.Phi3Model", {{"partial_rotary_factor", 0.75}, {"sliding_window", 7}}},
          {"transformers.GraniteModel", {{"residual_multiplier", 0.5}, {"mlp_bias", true}}},
          {"transformers.SmolLM3Model", smol},
          {"transformers.Olmo2Model"},
          {"transformers.Lfm2Model",
           {{"layer_types", {"conv", "full_attention"}}, {"conv_bias", true}}},
          {"transformers.MinistralModel", {{"sliding_window", 6}}},
          {kEuroBert}};
}

class LlamaTest : public DeviceModelTest {
 protected:
  // A mask hides all that some rows see.
  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kLlamaWords);
    if (!masked) return item;
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
    for (int64_t i = 0; i < length; ++i) bytes[i] = std::byte{Any(0, 2) == 1};
    bytes[Any(0, length - 1)] = std::byte{1};
    item.inputs["attention_mask"] = mask;
    return item;
  }

  static Tensor RowsOf(Model& model, const Item& item) {
    return Compute(model, {item})[0].at("last_hidden_state");
  }

  Item WithToken(const Item& item, int64_t place) const {
    const Tensor& ids = item.inputs.at("x");
    std::vector<int64_t> changed(ids.data<int64_t>(), ids.data<int64_t>() + ids.elements());
    int64_t& token = changed[static_cast<size_t>(place)];
    token = (token + 1) % kLlamaWords;
    Item other = item;
    other.inputs["x"] = Tensor::FromInts(ids.shape(), changed);
    return other;
  }
};

TEST_F(LlamaTest, GivesTheSameRowsInEveryMode) {
  for (const LlamaKind& kind : LlamaKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const auto model = Make(kind.architecture, LlamaParams(kind.params));
    ExpectTheSameInMixes(*model, 8,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(LlamaTest, ComputesLongSequencesAsTheyAreAlone) {
  for (const LlamaKind& kind : LlamaKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    json params = kind.params;
    params["max_position_embeddings"] = 500;
    const auto model = Make(kind.architecture, LlamaParams(params));
    std::vector<Item> items;
    for (const int64_t length : {200, 3, 129, 128, 40, 1}) items.push_back(Sequence(length, false));
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(LlamaTest, GivesADevicesRows) {
  for (const LlamaKind& kind : LlamaKinds()) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(
          kind.architecture, LlamaParams(kind.params),
          [&](int64_t length) { return Sequence(length, masked); }, kLeastInBf16);
    }
  }
}

TEST_F(LlamaTest, IsRecordedOnADevice) {
  for (const auto& [architecture, least] : {std::pair{kQwen3, kLeastInBf16}, {kEuroBert, 0.999}}) {
    SCOPED_TRACE(architecture);
    const std::string directory = Directory(architecture, LlamaParams());
    const auto model = LoadOn("simulated:0", directory, "bf16");
    std::vector<Item> items;
    for (const int64_t length : {5, 1, 9, 9}) items.push_back(Sequence(length, false));
    const int64_t launches = LaunchesOf(*model, items);
    ASSERT_TRUE(model->Prepare().ok());
    EXPECT_LT(LaunchesOf(*model, items), launches);
    ExpectCosines(Compute(*model, items), Compute(*Load(directory), items), least);
  }
}

// LibTorch's kernel takes such heads.
TEST_F(LlamaTest, GivesOnADeviceTheRowsOfTheCpuWithWideHeadsThatShareKeys) {
  for (const char* architecture : {kQwen3, kEuroBert}) {
    ExpectTheRowsOfTheCpu(
        architecture, LlamaParams({{"head_dim", 136}, {"num_key_value_heads", 1}}),
        [&](int64_t length) { return Sequence(length, false); }, kLeastInBf16);
  }
}

TEST_F(LlamaTest, AsksADeviceNoMoreWhereABatchHasMoreSequences) {
  for (const char* architecture : {kQwen3, kEuroBert}) {
    SCOPED_TRACE(architecture);
    const auto model = LoadOn("simulated:0", Init(architecture, LlamaParams()), "bf16");
    EXPECT_EQ(LaunchesOf(*model, 50, Pooling::kLast), LaunchesOf(*model, 5, Pooling::kLast));
  }
}

TEST_F(LlamaTest, IsCloseToFloat32InAllTypes) {
  for (const LlamaKind& kind : LlamaKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const std::string directory = Directory(kind.architecture, LlamaParams(kind.params));
    const Item item = Sequence(24, false);
    const Tensor exact = RowsOf(*Load(directory), item);
    for (const std::string& type : TypesOfCpu()) {
      EXPECT_GE(SmallestCosine(exact, RowsOf(*Load(directory, {.dtype = type}), item)),
                kLeastInBf16)
          << type;
    }
  }
}

TEST_F(LlamaTest, DependsOnLaterTokensOnlyWhereItIsBidirectional) {
  constexpr int64_t kRows = 20;
  for (const LlamaKind& kind : LlamaKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const auto model = Make(kind.architecture, LlamaParams(kind.params));
    const Item item = Sequence(kRows, false);
    const Tensor rows = RowsOf(*model, item);
    const Tensor others = RowsOf(*model, WithToken(item, kRows - 1));
    const bool sees_later = kind.architecture == std::string(kEuroBert) ||
                            kind.params.contains("use_bidirectional_attention") ||
                            kind.params.contains("is_causal");
    const double difference = LargestDifference(rows.Rows(0, kRows - 1), others.Rows(0, kRows - 1));
    EXPECT_EQ(difference > 1e-4, sees_later) << difference;
    EXPECT_GT(LargestDifference(rows.Rows(kRows - 1, kRows), others.Rows(kRows - 1, kRows)), 1e-3);
  }
}

TEST_F(LlamaTest, SeesNoFurtherBackThanItsWindow) {
  constexpr int64_t kWindow = 4;
  const auto model = Make("transformers.MistralModel",
                          LlamaParams({{"num_hidden_layers", 1}, {"sliding_window", kWindow}}));
  const Item item = Sequence(12, false);
  const Tensor rows = RowsOf(*model, item);
  const Tensor others = RowsOf(*model, WithToken(item, 2));
  const int64_t first = 2 + kWindow;  // that does not see it
  EXPECT_GT(LargestDifference(rows.Rows(first - 1, first), others.Rows(first - 1, first)), 1e-4);
  EXPECT_LT(LargestDifference(rows.Rows(first, 12), others.Rows(first, 12)), 1e-6);
}

TEST_F(LlamaTest, ScoresTheLastTokenThatIsNoPadding) {
  const auto model = Make("transformers.Qwen3ForSequenceClassification",
                          LlamaParams({{"pad_token_id", 7}, {"num_labels", 3}}));
  const auto scores = [&](const std::vector<int64_t>& ids) {
    Item item;
    item.inputs["x"] = Tensor::FromInts({static_cast<int64_t>(ids.size())}, ids);
    return Compute(*model, {item})[0].at("logits");
  };
  EXPECT_LT(LargestDifference(scores({1, 7, 3, 7, 7}), scores({1, 7, 3})), kTolerance);
  EXPECT_GT(LargestDifference(scores({1, 7, 3, 8}), scores({1, 7, 3})), 1e-3);
  EXPECT_LT(LargestDifference(scores({7, 7, 7}), scores({7})), kTolerance);
}

TEST_F(LlamaTest, ScoresTheLastTokenWhereNoneIsPadding) {
  const auto model = Make("transformers.LlamaForSequenceClassification", LlamaParams());
  const Item item = Sequence(6, false);
  EXPECT_GT(LargestDifference(Compute(*model, {item})[0].at("logits"),
                              Compute(*model, {WithToken(item, 5)})[0].at("logits")),
            1e-3);
}

TEST_F(LlamaTest, OfEuroBertPoolsAsEitherNameOfItsPoolingSays) {
  constexpr const char* kScores = "transformers.EuroBertForSequenceClassification";
  const Item item = Tokens(9, kLlamaWords);
  const auto scores = [&](const json& changed) {
    return Compute(*Load(Init(kScores, LlamaParams(changed))), {item})[0].at("logits");
  };
  const Tensor first = scores({{"classifier_pooling", "bos"}});
  EXPECT_EQ(LargestDifference(scores({{"clf_pooling", "bos"}}), first), 0);
  EXPECT_EQ(
      LargestDifference(scores({{"clf_pooling", "bos"}, {"classifier_pooling", "bos"}}), first), 0);
  EXPECT_GT(LargestDifference(scores(json::object()), first), 0);
  EXPECT_THAT(
      InitError(kScores, LlamaParams({{"clf_pooling", "bos"}, {"classifier_pooling", "mean"}})),
      HasSubstr("what classifier_pooling says"));
}

TEST_F(LlamaTest, TakesLengthsThatDynamicPositionsDoNotDependOn) {
  const json dynamic = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  const auto model = Make("transformers.LlamaModel", LlamaParams({{"rope_scaling", dynamic}}));
  EXPECT_EQ(model->info().signature.limits[0].longest, 42);
  EXPECT_THAT(InitError("transformers.LlamaModel",
                        LlamaParams({{"rope_scaling", dynamic}, {"max_seq_length", 50}})),
              HasSubstr("\"max_seq_length\" is 50, expected at most max_position_embeddings = 42"));
}

TEST_F(LlamaTest, TakesLengthsThatLongPositionsDoNotDependOn) {
  const json rope = {{"rope_type", "longrope"},
                     {"short_factor", std::vector<double>(8, 1.5)},
                     {"original_max_position_embeddings", 30}};
  const auto model = Make("transformers.LlamaModel", LlamaParams({{"rope_parameters", rope}}));
  EXPECT_EQ(model->info().signature.limits[0].longest, 30);
  EXPECT_THAT(InitError("transformers.LlamaModel",
                        LlamaParams({{"rope_parameters", rope}, {"max_seq_length", 31}})),
              HasSubstr("expected at most original_max_position_embeddings = 30"));
}

TEST_F(LlamaTest, RefusesWhatIsNotComputedByName) {
  const auto error = [](const char* architecture, const json& changed) {
    return InitError(architecture, LlamaParams(changed));
  };
  const auto rope = [&](const json& parameters) {
    return error(kQwen3, {{"rope_parameters", parameters}});
  };
  EXPECT_THAT(error(kQwen3, {{"num_key_value_heads", 3}}), HasSubstr("a divisor of"));
  EXPECT_THAT(error(kQwen3, {{"head_dim", 7}}), HasSubstr("heads of an even width"));
  EXPECT_THAT(error("transformers.LlamaModel", {{"head_dim", nullptr}, {"hidden_size", 34}}),
              HasSubstr("a multiple of num_attention_heads = 4"));
  EXPECT_THAT(error(kQwen3, {{"layer_types", {"full_attention", "sliding_attention"}}}),
              HasSubstr("\"use_sliding_window\""));
  EXPECT_THAT(error(kQwen3, {{"layer_types", {"full_attention", "chunked_attention"}}}),
              HasSubstr("layer_types"));
  EXPECT_THAT(error(kQwen3, {{"layer_types", {"full_attention"}}}),
              HasSubstr("as many as num_hidden_layers = 2"));
  EXPECT_THAT(error("transformers.MistralModel", {{"layer_types", {"full_attention"}}}),
              HasSubstr("all layers have sliding_window"));
  EXPECT_THAT(error(kGemma3, {{"sliding_window", nullptr}}), HasSubstr("\"sliding_window\""));
  EXPECT_THAT(error(kGemma3, {{"attn_logit_softcapping", 50.0}}), HasSubstr("are not capped"));
  EXPECT_THAT(error(kGemma2, {{"attn_logit_softcapping", 0}}),
              HasSubstr("\"attn_logit_softcapping\""));
  EXPECT_THAT(error(kGemma2, {{"use_bidirectional_attention", true}}),
              HasSubstr("in some batches only"));
  EXPECT_THAT(error(kGemma3, {{"is_causal", false}}), HasSubstr("use_bidirectional_attention"));
  EXPECT_THAT(error(kGemma3, {{"rope_parameters", {{"rope_type", "linear"}}}}),
              HasSubstr("for each type of layers"));
  EXPECT_THAT(error(kGemma3, {{"query_pre_attn_scalar", 0}}), HasSubstr("query_pre_attn_scalar"));
  EXPECT_THAT(rope({{"rope_type", "proportional"}}),
              HasSubstr("expected one of default, linear, dynamic, llama3, longrope, yarn"));
  EXPECT_THAT(rope({{"rope_type", "longrope"}, {"short_factor", {1, 2}}}),
              HasSubstr("as many of short_factor as pairs are turned, 8"));
  EXPECT_THAT(error("transformers.Phi3Model", {{"partial_rotary_factor", 0.2}}),
              HasSubstr("its halves are turned"));
  EXPECT_THAT(error("transformers.Lfm2Model", {{"layer_types", {"conv", "sliding_attention"}}}),
              HasSubstr("one of full_attention, conv"));
  EXPECT_THAT(error("transformers.SmolLM3Model", {{"no_rope_layers", {1}}}),
              HasSubstr("at least num_hidden_layers = 2"));
  EXPECT_THAT(error("transformers.SmolLM3Model",
                    {{"layer_types", {"full_attention", "sliding_attention"}}}),
              HasSubstr("as there is no sliding_window"));
  EXPECT_THAT(rope({{"rope_type", "linear"}}), HasSubstr("\"factor\""));
  EXPECT_THAT(rope({{"partial_rotary_factor", 0.5}}), HasSubstr("heads are turned as a whole"));
  EXPECT_THAT(rope({{"full_attention", {{"rope_theta", 5.0}}}}), HasSubstr("the same positions"));
  EXPECT_THAT(rope({{"rope_type", "llama3"},
                    {"factor", 8},
                    {"low_freq_factor", 4},
                    {"high_freq_factor", 4}}),
              HasSubstr("\"high_freq_factor\""));
  EXPECT_THAT(error(kQwen3, {{"rope_scaling", {{"type", "default"}}},
                             {"rope_parameters", {{"rope_type", "default"}}}}),
              HasSubstr("none beside rope_parameters"));
  EXPECT_THAT(
      error("transformers.EuroBertForSequenceClassification", {{"classifier_pooling", "max"}}),
      HasSubstr("expected one of bos, mean, late"));
}

}  // namespace
}  // namespace linserve
