// What a configuration of transformers may say in more than one way.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/model_fixture.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TransformersConfigurationTest : public ModelFixture {
 protected:
  // Makes a model of such tensors, whose configuration the functions below replace.
  void Make(const std::string& architecture, const json& params) {
    architecture_ = architecture;
    directory_ = Directory(architecture, params.dump());
  }

  std::vector<float> Rows(const json& params) {
    Write(directory_, "config.json",
          json{{"architecture", architecture_}, {"params", params}}.dump());
    const auto model = Load(directory_);
    if (model == nullptr) return {};
    const Tensor rows = Compute(*model, {item_})[0].at("last_hidden_state");
    return {rows.data<float>(), rows.data<float>() + rows.elements()};
  }

  static json With(json params, const json& more) {
    params.update(more);
    return params;
  }

  const json distil_ = {{"vocab_size", 20}, {"hidden_dim", 16}, {"max_position_embeddings", 12},
                        {"dim", 8},         {"n_heads", 2},     {"n_layers", 2}};
  const json rotary_ = {{"vocab_size", 20},        {"hidden_size", 8},
                        {"num_hidden_layers", 2},  {"num_attention_heads", 2},
                        {"intermediate_size", 16}, {"max_position_embeddings", 32}};
  const Item item_ = Tokens(7, 20);

 private:
  std::string architecture_, directory_;
};

TEST_F(TransformersConfigurationTest, OfDistilBertFollowsTheNamesThatOtherModelsHaveForSizes) {
  Make("transformers.DistilBertModel", distil_);
  const json others = {
      {"vocab_size", 20}, {"hidden_dim", 16},         {"max_position_embeddings", 12},
      {"hidden_size", 8}, {"num_attention_heads", 2}, {"num_hidden_layers", 2}};
  EXPECT_EQ(Rows(others), Rows(distil_));
  const auto of_four_heads = Rows(With(distil_, {{"num_attention_heads", 4}}));
  EXPECT_EQ(of_four_heads, Rows(With(distil_, {{"n_heads", 4}})));
  EXPECT_NE(of_four_heads, Rows(distil_));
}

TEST_F(TransformersConfigurationTest, OfRowsThatSeeEarlierOnesAloneIsRefused) {
  EXPECT_THAT(
      InitError("transformers.DistilBertModel", With(distil_, {{"is_causal", true}}).dump()),
      HasSubstr("is_causal"));
  const json t5 = {{"vocab_size", 20}, {"d_model", 8},   {"d_kv", 4},        {"d_ff", 16},
                   {"num_layers", 1},  {"num_heads", 2}, {"is_causal", true}};
  for (const char* name : {"transformers.T5EncoderModel", "transformers.UMT5EncoderModel"}) {
    EXPECT_THAT(InitError(name, t5.dump()), HasSubstr("is_causal")) << name;
  }
}

TEST_F(TransformersConfigurationTest, FindsTheBaseOfPositionsWhereverItStands) {
  const json rope = {{"rope_type", "default"}, {"rope_theta", 12.0}};
  for (const char* name : {"transformers.GteModel", "transformers.NomicBertModel"}) {
    Make(name, rotary_);
    const auto expected = Rows(With(rotary_, {{"rope_parameters", rope}}));
    EXPECT_EQ(Rows(With(rotary_, {{"rope_scaling", rope}})), expected) << name;
    EXPECT_EQ(Rows(With(rotary_, {{"rope_theta", 12.0}})), expected) << name;
    EXPECT_NE(Rows(rotary_), expected) << name;
  }
  EXPECT_THAT(
      InitError("transformers.ModernBertModel", With(rotary_, {{"rope_scaling", rope}}).dump()),
      HasSubstr("it is said for each type of layers"));
}

}  // namespace
}  // namespace linserve
