// What differs from BERT in few places: norms before the sums, rotary positions, kinds of tokens.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"
#include "models/random_weights.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr const char* kEsmModel = "transformers.EsmModel";
constexpr const char* kErnieModel = "transformers.ErnieModel";
constexpr const char* kRoFormerModel = "transformers.RoFormerModel";
constexpr int64_t kKinWords = 20;
constexpr int64_t kKinMask = 5;  // ESM's masked token

json KinParams(const json& changed = json::object()) {
  json params = {{"vocab_size", kKinWords}, {"hidden_size", 16},
                 {"num_hidden_layers", 2},  {"num_attention_heads", 2},
                 {"intermediate_size", 24}, {"max_position_embeddings", 42}};
  params.update(changed);
  return params;
}

json EsmParams(const json& changed = json::object()) {
  json params = KinParams({{"position_embedding_type", "rotary"},
                           {"token_dropout", true},
                           {"pad_token_id", 1},
                           {"mask_token_id", kKinMask}});
  params.update(changed);
  return params;
}

struct KinCase {
  std::string architecture;
  json params;
};

std::vector<KinCase> KinCases() {
  std::vector<KinCase> cases = {{kEsmModel, EsmParams()},
                                {kEsmModel, EsmParams({{"position_embedding_type", "absolute"},
                                                       {"emb_layer_norm_before", true}})},
                                {kErnieModel, KinParams({{"use_task_id", true}})},
                                {kRoFormerModel, KinParams({{"embedding_size", 12}})},
                                {kRoFormerModel, KinParams({{"rotary_value", true}})}};
  for (const char* name : {"Data2VecText", "RobertaPreLayerNorm", "XLMRobertaXL", "MegatronBert",
                           "JinaEmbeddingsV3"}) {
    cases.push_back({"transformers." + std::string(name) + "Model", KinParams()});
  }
  const std::vector<KinCase> encoders = cases;
  for (KinCase one : encoders) {
    one.architecture.replace(one.architecture.rfind("Model"), 5, "ForSequenceClassification");
    one.params["num_labels"] = 5;
    cases.push_back(one);
  }
  return cases;
}

class BertKinTest : public DeviceModelTest {
 protected:
  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kKinWords);
    if (masked) item.inputs["attention_mask"] = MaskOf(length, 0, Any(1, length));
    return item;
  }

  static Item OfIds(const std::vector<int64_t>& ids) {
    Item item;
    item.inputs["x"] = Tensor::FromInts({std::ssize(ids)}, ids);
    return item;
  }

  static std::vector<float> RowsOf(Model& model, const Item& item) {
    const Tensor rows = Compute(model, {item})[0].at("last_hidden_state");
    return {rows.data<float>(), rows.data<float>() + rows.elements()};
  }
};

TEST_F(BertKinTest, ComputesASequenceAsItDoesAlone) {
  for (const KinCase& one : KinCases()) {
    SCOPED_TRACE(one.architecture + one.params.dump());
    const auto model = Make(one.architecture, one.params.dump());
    ExpectTheSameInMixes(*model, 6,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(BertKinTest, ComputesOnADeviceAsOnTheCpu) {
  for (const KinCase& one : KinCases()) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(one.architecture, one.params.dump(),
                            [&](int64_t length) { return Sequence(length, masked); });
    }
  }
}

TEST_F(BertKinTest, IsRecordedOnADevice) {
  for (const KinCase& one : KinCases()) {
    ExpectRecordedRowsOfTheCpu(one.architecture, one.params.dump(),
                               [&](int64_t length) { return Sequence(length, false); });
  }
}

TEST_F(BertKinTest, OfEsmTakesTheFrequenciesThatOlderFilesHaveInTheirLayers) {
  const std::string directory = Directory(kEsmModel, EsmParams().dump());
  const Item item = Tokens(7, kKinWords);
  TensorMap weights = ReadWeights(directory);
  const std::string name = "rotary_embeddings.inv_freq";
  const Tensor usual = Tensor::FromFloats({4}, {1, 0.1f, 0.01f, 0.001f});  // of 10000
  const auto rows_of = [&](const std::string& prefix, const Tensor& frequencies) {
    TensorMap changed = weights;
    changed.erase(name);
    if (frequencies.elements() > 0) changed[prefix + name] = frequencies;
    WriteWeights(directory, changed);
    return RowsOf(*Load(directory), item);
  };
  const auto expected = rows_of("", usual);
  EXPECT_THAT(rows_of("", Tensor()), Pointwise(FloatNear(1e-5f), expected));
  const Tensor other = RandomFloats({4});
  const auto turned = rows_of("", other);
  EXPECT_NE(turned, expected);
  EXPECT_EQ(rows_of("encoder.layer.1.attention.self.", other), turned);
  EXPECT_EQ(rows_of("encoder.layer.*.attention.self.", other), turned);
}

TEST_F(BertKinTest, OfEsmHasFiniteRowsWhereAllTokensAreMasked) {
  const auto model = Make(kEsmModel, EsmParams().dump());
  for (const float value : RowsOf(*model, OfIds({kKinMask, kKinMask, kKinMask}))) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_F(BertKinTest, OfErnieTakesTasksWhereItHasAny) {
  const auto model = Make(kErnieModel, KinParams({{"use_task_id", true}}).dump());
  Item item = OfIds({7, 8, 9});
  const auto expected = RowsOf(*model, item);
  item.inputs["task_type_ids"] = Tensor::FromInts({3}, {0, 0, 0});
  EXPECT_EQ(RowsOf(*model, item), expected);
  item.inputs["task_type_ids"] = Tensor::FromInts({3}, {0, 2, 0});
  EXPECT_NE(RowsOf(*model, item), expected);
  const auto without = Make(kErnieModel, KinParams().dump());
  EXPECT_EQ(without->info().signature.FindInput("task_type_ids"), nullptr);
}

TEST_F(BertKinTest, IsRefusedByWhatIsNotComputed) {
  const auto error = [](const json& changed) {
    return InitError(kEsmModel, EsmParams(changed).dump());
  };
  EXPECT_THAT(error({{"is_folding_model", true}}), HasSubstr("is_folding_model"));
  EXPECT_THAT(error({{"mask_token_id", nullptr}}), HasSubstr("mask_token_id"));
  EXPECT_THAT(error({{"position_embedding_type", "relative_key"}}),
              HasSubstr("position_embedding_type"));
  EXPECT_THAT(error({{"position_embedding_type", "absolute"}, {"pad_token_id", nullptr}}),
              HasSubstr("pad_token_id"));
  EXPECT_THAT(InitError("transformers.JinaEmbeddingsV3Model", KinParams({{"head_dim", 4}}).dump()),
              HasSubstr("head_dim"));
  EXPECT_THAT(InitError(kRoFormerModel, KinParams({{"num_attention_heads", 16}}).dump()),
              HasSubstr("heads of an even width"));
}

}  // namespace
}  // namespace linserve
