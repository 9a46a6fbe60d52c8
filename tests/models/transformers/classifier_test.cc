// Classifiers and re-rankers: an encoder with layers behind it that score classes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int64_t kClassifierWords = 30;

struct ClassifierKind {
  const char* architecture;
  json params = json::object();
};

json ClassifierSizes(const std::string& architecture) {
  if (architecture.find("DistilBert") != std::string::npos) {
    return {{"vocab_size", kClassifierWords},
            {"dim", 16},
            {"n_layers", 2},
            {"n_heads", 2},
            {"hidden_dim", 24},
            {"max_position_embeddings", 42}};
  }
  json sizes = {{"vocab_size", kClassifierWords}, {"hidden_size", 16},
                {"num_hidden_layers", 2},         {"num_attention_heads", 2},
                {"intermediate_size", 24},        {"max_position_embeddings", 42}};
  if (architecture.starts_with("molformer")) sizes["num_random_features"] = 16;
  return sizes;
}

std::vector<ClassifierKind> Kinds() {
  std::vector<ClassifierKind> kinds = {
      {"transformers.ModernBertForSequenceClassification",
       {{"classifier_pooling", "mean"}, {"norm_bias", true}}},
      {"transformers.NystromformerForSequenceClassification",
       {{"num_landmarks", 5}, {"segment_means_seq_len", 40}, {"conv_kernel_size", 5}}},
      {"transformers.DebertaV2ForSequenceClassification",
       {{"relative_attention", true},
        {"pos_att_type", "p2c|c2p"},
        {"position_buckets", 8},
        {"share_att_key", true},
        {"norm_rel_ebd", "layer_norm"},
        {"position_biased_input", false},
        {"conv_kernel_size", 3}}},
      {"transformers.DebertaForSequenceClassification",
       {{"relative_attention", true}, {"pos_att_type", {"c2p", "p2c"}}, {"embedding_size", 12}}},
      {"jina_bert.JinaBertForSequenceClassification", {{"feed_forward_type", "geglu"}}},
      {"molformer.MolformerForSequenceClassification", {{"classifier_skip_connection", false}}},
      {"transformers.Qwen3ForSequenceClassification",
       {{"num_key_value_heads", 1}, {"head_dim", 8}, {"pad_token_id", 3}}},
      {"transformers.EuroBertForSequenceClassification"}};
  for (const char* architecture : {"transformers.BertForSequenceClassification",
                                   "transformers.RobertaForSequenceClassification",
                                   "transformers.XLMRobertaForSequenceClassification",
                                   "transformers.DistilBertForSequenceClassification",
                                   "transformers.MPNetForSequenceClassification",
                                   "transformers.ModernBertForSequenceClassification",
                                   "transformers.NystromformerForSequenceClassification",
                                   "transformers.NomicBertForSequenceClassification",
                                   "transformers.GteForSequenceClassification",
                                   "transformers.DebertaV2ForSequenceClassification",
                                   "transformers.ElectraForSequenceClassification",
                                   "transformers.AlbertForSequenceClassification",
                                   "molformer.MolformerForSequenceClassification"}) {
    kinds.push_back({architecture});
  }
  for (ClassifierKind& kind : kinds) {
    kind.params.update(ClassifierSizes(kind.architecture));
    kind.params["num_labels"] = 5;
  }
  return kinds;
}

class ClassifierTest : public DeviceModelTest {
 protected:
  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kClassifierWords);
    item.options.outputs = {"logits"};
    if (masked) {
      // One row at least is there, which need not be the first one.
      const int64_t there = Any(0, length - 1);
      item.inputs["attention_mask"] = MaskOf(length, there, Any(there + 1, length));
    }
    return item;
  }
};

TEST_F(ClassifierTest, ScoresASequenceAsItDoesAlone) {
  for (const ClassifierKind& kind : Kinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const auto model = Make(kind.architecture, kind.params.dump());
    ExpectTheSameInMixes(*model, 6,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(ClassifierTest, ScoresOnADeviceAsOnTheCpu) {
  for (const ClassifierKind& kind : Kinds()) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(kind.architecture, kind.params.dump(),
                            [&](int64_t length) { return Sequence(length, masked); });
    }
  }
}

TEST_F(ClassifierTest, OnADeviceIsRecordedAsItsEncoderIs) {
  for (const ClassifierKind& kind : Kinds()) {
    ExpectRecordedRowsOfTheCpu(kind.architecture, kind.params.dump(),
                               [&](int64_t length) { return Sequence(length, false); });
  }
}

TEST_F(ClassifierTest, AsksADeviceNoMoreWhereABatchHasMoreSequences) {
  for (const char* family : {"Bert", "Roberta", "NomicBert"}) {
    SCOPED_TRACE(family);
    const std::string architecture =
        std::string("transformers.") + family + "ForSequenceClassification";
    const auto model =
        LoadOn("simulated:0", Init(architecture, ClassifierSizes(architecture).dump()), "bf16");
    EXPECT_EQ(LaunchesOf(*model, 50, Pooling::kNone), LaunchesOf(*model, 5, Pooling::kNone));
  }
}

TEST_F(ClassifierTest, IsCloseToFloat32InAllTypes) {
  for (const ClassifierKind& kind : Kinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const std::string directory = Directory(kind.architecture, kind.params.dump());
    const auto exact = Load(directory);
    for (const std::string& type : TypesOfCpu()) {
      const auto rounded = Load(directory, {.dtype = type});
      const Item item = Sequence(24, false);
      EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("logits"),
                               Compute(*rounded, {item})[0].at("logits")),
                0.99)
          << type;
    }
  }
}

TEST_F(ClassifierTest, ReadsTheFirstRowEvenWhereAMaskHidesIt) {
  const ClassifierKind kind{"transformers.RobertaForSequenceClassification", ClassifierSizes("")};
  const auto model = Make(kind.architecture, kind.params.dump());
  Item item = Sequence(9, false);
  item.inputs["attention_mask"] = MaskOf(9, 2, 9);
  Item other = item;
  const auto* ids = item.inputs.at("x").data<int64_t>();
  std::vector<int64_t> changed(ids, ids + 9);
  changed[0] = (ids[0] + 1) % kClassifierWords;
  other.inputs["x"] = Tensor::FromInts({9}, changed);
  const auto scores = Compute(*model, {item, other});
  EXPECT_GT(LargestDifference(scores[0].at("logits"), scores[1].at("logits")), 1e-3);
  // No row is needed that is there.
  item.inputs["attention_mask"] = MaskOf(9, 0, 0);
  EXPECT_TRUE(Validate(model->info().signature, item).ok());
}

TEST_F(ClassifierTest, OfTheMeanNeedsARowThatIsThere) {
  const ClassifierKind kind = Kinds()[0];
  const auto model = Make(kind.architecture, kind.params.dump());
  Item item = Sequence(9, false);
  item.inputs["attention_mask"] = MaskOf(9, 0, 0);
  EXPECT_THAT(std::string(Validate(model->info().signature, item).message()),
              HasSubstr("it leaves no row of output 'logits' to pool"));
}

TEST_F(ClassifierTest, RefusesWhatIsNotComputedByName) {
  const auto error = [](const std::string& family, json params) {
    const std::string architecture = family + "ForSequenceClassification";
    params.update(ClassifierSizes(architecture));
    return InitError(architecture, params.dump());
  };
  EXPECT_THAT(error("transformers.ModernBert", {{"classifier_pooling", "max"}}),
              HasSubstr("\"classifier_pooling\" is \"max\", expected one of cls, mean"));
  EXPECT_THAT(error("transformers.ModernBert", {{"classifier_activation", "prelu"}}),
              HasSubstr("\"classifier_activation\" is \"prelu\", expected one of gelu"));
  EXPECT_THAT(error("transformers.ModernBert", {{"classifier_bias", 1}}),
              HasSubstr("\"classifier_bias\" is 1, expected true or false"));
  EXPECT_THAT(error("molformer.Molformer", {{"classifier_skip_connection", "no"}}),
              HasSubstr("\"classifier_skip_connection\" is \"no\", expected true or false"));
  EXPECT_THAT(error("transformers.Bert", {{"classifier_pooling", "cls"}}),
              HasSubstr("unknown parameter \"classifier_pooling\""));
}

TEST_F(ClassifierTest, HasThePoolerThatItsClassHasWhateverTheArgumentsSay) {
  for (const bool pooler : {false, true}) {
    json params = ClassifierSizes("");
    params["add_pooling_layer"] = pooler;
    EXPECT_NE(Make("transformers.BertForSequenceClassification", params.dump())
                  ->info()
                  .signature.FindOutput("pooler_output"),
              nullptr);
    EXPECT_EQ(Make("transformers.RobertaForSequenceClassification", params.dump())
                  ->info()
                  .signature.FindOutput("pooler_output"),
              nullptr);
  }
}

}  // namespace
}  // namespace linserve
