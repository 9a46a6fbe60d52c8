// T5's encoders: scores depend on distances alone, which far ones share.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"
#include "models/random_weights.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int64_t kT5Words = 30;
constexpr const char* kT5 = "transformers.T5EncoderModel";
constexpr const char* kUmt5 = "transformers.UMT5EncoderModel";

// Scores that are not scaled, of weights that were not trained for it, magnify what is rounded.
constexpr double kLeastOfT5InBf16 = 0.99;

struct T5Kind {
  const char* architecture;
  json params = json::object();
};

// Returns arguments of a small model, but for these. Heads are wider together than rows.
std::string T5Params(const json& changed = json::object()) {
  json params = json::parse(R"({
    "vocab_size": 30, "d_model": 24, "d_kv": 16, "d_ff": 40, "num_layers": 2, "num_heads": 2,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
    "n_positions": 42})");
  params.update(changed);
  return params.dump();
}

std::vector<T5Kind> T5Kinds() {
  return {{kT5}, {kT5, {{"feed_forward_proj", "gated-gelu"}, {"d_kv", 7}}}, {kUmt5}};
}

class T5Test : public DeviceModelTest {
 protected:
  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kT5Words);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    return item;
  }

  Tensor RowsOf(const std::string& architecture, const json& changed, const Item& item) {
    return Compute(*Make(architecture, T5Params(changed)), {item})[0].at("last_hidden_state");
  }
};

TEST_F(T5Test, GivesTheSameRowsInEveryMode) {
  for (const T5Kind& kind : T5Kinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const auto model = Make(kind.architecture, T5Params(kind.params));
    ExpectTheSameInMixes(*model, 8,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(T5Test, ComputesLongSequencesAsTheyAreAlone) {
  for (const T5Kind& kind : T5Kinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    json params = kind.params;
    params["n_positions"] = 500;
    const auto model = Make(kind.architecture, T5Params(params));
    std::vector<Item> items;
    for (const int64_t length : {200, 3, 129, 128, 40, 1}) items.push_back(Sequence(length, false));
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(T5Test, GivesOnADeviceTheRowsOfTheCpu) {
  for (const T5Kind& kind : T5Kinds()) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(
          kind.architecture, T5Params(kind.params),
          [&](int64_t length) { return Sequence(length, masked); }, kLeastOfT5InBf16);
    }
  }
}

TEST_F(T5Test, HoldsInF16RowsThatGrowBeyondIt) {
  const std::string directory = Directory(kT5, T5Params());
  TensorMap weights = ReadWeights(directory);
  for (auto& [name, weight] : weights) {
    if (!name.ends_with("wo.weight")) continue;
    std::vector<float> values(weight.data<float>(), weight.data<float>() + weight.elements());
    for (float& value : values) value *= 1e5F;
    weight = Tensor::FromFloats(weight.shape(), values);
  }
  WriteWeights(directory, weights);
  const std::vector<Item> items = {Sequence(20, false)};
  const Tensor exact = Compute(*Load(directory), items)[0].at("last_hidden_state");
  const auto model = LoadOn("simulated:0", directory, "f16");
  const Tensor rows = Compute(*model, items)[0].at("last_hidden_state");
  EXPECT_GE(SmallestCosine(*Convert(rows, DType::kF32), exact), 0.999);
}

TEST_F(T5Test, FollowsWhatASavedConfigurationSaysTwiceAsThePackageDoes) {
  const Item item = Sequence(20, false);
  const auto expect_same = [&](const json& changed, const json& other) {
    EXPECT_EQ(LargestDifference(RowsOf(kT5, changed, item), RowsOf(kT5, other, item)), 0)
        << changed << other;
  };
  expect_same({{"feed_forward_proj", "relu"}, {"dense_act_fn", "silu"}},
              {{"feed_forward_proj", "silu"}});
  expect_same({{"feed_forward_proj", "relu"}, {"is_gated_act", true}},
              {{"feed_forward_proj", "gated-relu"}});
  expect_same({{"feed_forward_proj", "gated-gelu"}},
              {{"feed_forward_proj", "gated-silu"}, {"dense_act_fn", "gelu_new"}});
  expect_same({{"num_heads", 5}, {"num_attention_heads", 2}, {"head_dim", 16}}, json::object());
}

TEST_F(T5Test, TakesTextsAsLongAsSentenceTransformersDoes) {
  const auto longest = [this](const json& changed) {
    return Make(kT5, T5Params(changed))->info().signature.limits[0].longest;
  };
  EXPECT_EQ(longest({{"max_seq_length", 50}}), 50);
  EXPECT_EQ(longest({{"model_max_length", 60}}), 60);
  EXPECT_EQ(longest(json::object()), 42);
}

TEST_F(T5Test, RefusesWhatIsNotComputedByName) {
  const auto error = [](const json& changed) { return InitError(kT5, T5Params(changed)); };
  EXPECT_THAT(error({{"is_decoder", true}}), HasSubstr("only encoders are computed"));
  EXPECT_THAT(error({{"feed_forward_proj", "gated-gated-gelu"}}),
              HasSubstr("\"feed_forward_proj\" is \"gated-gated-gelu\", expected one of"));
  EXPECT_THAT(error({{"dense_act_fn", "swiglu"}}), HasSubstr("\"dense_act_fn\""));
  EXPECT_THAT(error({{"relative_attention_num_buckets", 3}}), HasSubstr("at least 4"));
  EXPECT_THAT(error({{"relative_attention_max_distance", 2}}),
              HasSubstr("\"relative_attention_max_distance\" is 2, expected more than 2, a quarter "
                        "of relative_attention_num_buckets"));
  EXPECT_THAT(error({{"layer_norm_epsilon", -1}}), HasSubstr("\"layer_norm_epsilon\""));
}

}  // namespace
}  // namespace linserve
