// A Hugging Face folder of a classifier or re-ranker is served with its head.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/config/hugging_face_fixture.h"
#include "models/inspect_model.h"
#include "support/golden_case.h"
#include "support/paths.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClassifierFolderTest : public HuggingFaceFixture {
 protected:
  // Makes the folder one of BertForSequenceClassification, with a head of three classes.
  ClassifierFolderTest() {
    RenameTensors([](const std::string& name) { return "bert." + name; },
                  {{"classifier.weight", RandomFloats({3, 8})},
                   {"classifier.bias", RandomFloats({3})},
                   {"cls.seq_relationship.bias", RandomFloats({2})}});
    WriteClassifier(json::object());
  }

  void WriteClassifier(const json& more) {
    json config = {{"architectures", {"BertForSequenceClassification"}},
                   {"id2label", {{"0", "no"}, {"1", "perhaps"}, {"2", "yes"}}},
                   {"label2id", {{"no", 0}, {"perhaps", 1}, {"yes", 2}}}};
    config.update(more);
    WriteConfig(config);
  }

  std::string ArchitectureOf(const json& config) {
    WriteClassifier(config);
    const auto read = ReadModelDirectory(folder_);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? read->network.architecture : "";
  }
};

TEST_F(ClassifierFolderTest, GivesScoresFirstAndNamesTheirClasses) {
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().architecture, "transformers.BertForSequenceClassification");
  EXPECT_THAT(*model->info().labels, ElementsAre("no", "perhaps", "yes"));
  std::vector<std::string> outputs;
  for (const OutputSpec& output : model->info().signature.outputs) outputs.push_back(output.name);
  EXPECT_THAT(outputs, ElementsAre("logits", "last_hidden_state", "pooler_output"));
  EXPECT_TRUE(model->info().signature.outputs[0].IsVector());
  Item pooled = item_;
  pooled.options.pooling = Pooling::kMean;
  EXPECT_EQ(Compute(*model, {pooled})[0].at("logits").shape(), Shape{3});
}

TEST_F(ClassifierFolderTest, IsKnownByTheClassesThatItNames) {
  EXPECT_EQ(ArchitectureOf({{"model_type", "camembert"},
                            {"architectures", {"CamembertForSequenceClassification"}}}),
            "transformers.RobertaForSequenceClassification");
  EXPECT_EQ(ArchitectureOf({{"model_type", "xlm-roberta"},
                            {"architectures", {"XLMRobertaForSequenceClassification"}}}),
            "transformers.XLMRobertaForSequenceClassification");
  EXPECT_EQ(
      ArchitectureOf({{"model_type", "new"}, {"architectures", {"NewForSequenceClassification"}}}),
      "transformers.GteForSequenceClassification");
  EXPECT_EQ(ArchitectureOf({{"model_type", "molformer"},
                            {"architectures", {"MolformerForSequenceClassification"}}}),
            "molformer.MolformerForSequenceClassification");
}

TEST_F(ClassifierFolderTest, OfAnotherTaskIsServedWithoutItsHead) {
  for (const json& classes : {json{"BertForMaskedLM"}, json{"BertForTokenClassification"}, json{7},
                              json(nullptr), json::object(), json("x"), json(7)}) {
    EXPECT_EQ(ArchitectureOf({{"architectures", classes}}), "transformers.BertModel") << classes;
  }
  EXPECT_EQ(Load(folder_)->info().labels, nullptr);
}

TEST_F(ClassifierFolderTest, WithModulesBesideItIsAnEncoderOfSentences) {
  WriteModules({"Transformer", "Pooling"});
  WriteModule("1_Pooling", {{"pooling_mode_cls_token", true}});
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().architecture, "transformers.BertModel");
  EXPECT_EQ(model->info().signature.outputs[0].name, "last_hidden_state");
  EXPECT_EQ(model->info().labels, nullptr);
}

// Newer versions of sentence-transformers write modules.json for re-rankers, too.
TEST_F(ClassifierFolderTest, OfAReRankerOfSentenceTransformersIsOneWithItsModulesBesideIt) {
  const auto architecture = [this] { return ReadModelDirectory(folder_)->network.architecture; };
  WriteModules({"Transformer"});
  EXPECT_EQ(architecture(), "transformers.BertModel");
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "feature-extraction"})");
  EXPECT_EQ(architecture(), "transformers.BertModel");
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "sequence-classification"})");
  EXPECT_EQ(architecture(), "transformers.BertForSequenceClassification");
  EXPECT_THAT(*Load(folder_)->info().labels, ElementsAre("no", "perhaps", "yes"));
  WriteModules({"Transformer", "Pooling"});
  WriteModule("1_Pooling", {{"pooling_mode_cls_token", true}});
  EXPECT_EQ(architecture(), "transformers.BertModel");
}

TEST_F(ClassifierFolderTest, WithoutItsHeadIsRefusedByTheTensorsThatAreMissing) {
  RenameTensors([](const std::string& name) {
    return name.starts_with("classifier.") || name.starts_with("bert.pooler.") ? "" : name;
  });
  EXPECT_THAT(Error(), HasSubstr("missing from the file (4):"));
  for (const char* name : {"classifier.weight [3, 8]", "classifier.bias [3]",
                           "bert.pooler.dense.weight [8, 8]", "bert.pooler.dense.bias [8]"}) {
    EXPECT_THAT(Error(), HasSubstr(name));
  }
}

TEST_F(ClassifierFolderTest, OfOtherWeightsIsServedWithAWarning) {
  const auto warnings = [this](const std::string& stranger) {
    RenameTensors([](const std::string& own) { return own; }, {{stranger, RandomFloats({3})}});
    return InspectModel(folder_)->warnings;
  };
  EXPECT_THAT(warnings("bert.adapters.weight"), IsEmpty());
  EXPECT_THAT(warnings("other.weight"), IsEmpty());
  EXPECT_THAT(warnings("classifier.scale"), ElementsAre(HasSubstr("has 1 of which")));
  EXPECT_THAT(warnings("bert.embeddings.scale"), ElementsAre(HasSubstr("has 2 of which")));
}

TEST_F(ClassifierFolderTest, WithAHeadForOtherClassesIsRefused) {
  WriteClassifier({{"id2label", {{"0", "no"}, {"1", "yes"}}}});
  EXPECT_THAT(Error(), HasSubstr("classifier.weight is [3, 8], expected [2, 8]"));
}

TEST_F(ClassifierFolderTest, KeepsItsOptionsAndTheLimitOfItsTexts) {
  Write(folder_, "tokenizer_config.json", R"({"model_max_length": 11})");
  WriteClassifier({{"serving", {{"pooling", "cls"}}}});
  EXPECT_EQ(Serving()["max_text_tokens"], 11);
  EXPECT_EQ(Serving()["pooling"], "cls");
  EXPECT_FALSE(Serving().contains("normalize"));
  EXPECT_EQ(Error(), "");
}

using Parts = std::vector<std::array<std::string, 2>>;

// Returns a name of transformers' class as the authors' files have it.
std::string Published(std::string name, const Parts& parts) {
  for (const auto& [published, own] : parts) {
    const size_t at = name.find(own);
    if (at != std::string::npos) name.replace(at, own.size(), published);
  }
  return name;
}

class PublishedClassifierTest : public HuggingFaceFixture {
 protected:
  // Expects the case's scores of a folder that has its tensors by names with these parts.
  void ExpectScoresOf(const std::string& name, const Parts& parts) {
    const GoldenCase golden(DataFile("goldens/" + name));
    for (const char* file : {"model.safetensors", "config.json"}) {
      std::filesystem::copy_file(golden.directory() + "/" + file, folder_ + "/" + file,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    RenameTensors([&](const std::string& own) { return Published(own, parts); });
    const Item item{golden.Inputs(1), {{"logits", "last_hidden_state"}}};
    EXPECT_EQ(LargestDifference(Compute(*Load(folder_), {item})[0],
                                Compute(*Load(golden.directory()), {item})[0]),
              0);
  }
};

TEST_F(PublishedClassifierTest, OfGteHasTheNamesOfItsAuthors) {
  ExpectScoresOf("gte-classifier", {{"new.encoder.layer.", "gte.layers."},
                                    {"new.", "gte."},
                                    {"attention.q_proj.", "self_attn.q_proj."},
                                    {"attention.k_proj.", "self_attn.k_proj."},
                                    {"attention.v_proj.", "self_attn.v_proj."},
                                    {"attention.o_proj.", "self_attn.o_proj."},
                                    {"attn_ln.", "post_attention_layernorm."},
                                    {"mlp_ln.", "post_mlp_layernorm."}});
}

TEST_F(PublishedClassifierTest, OfNomicBertHasTheNamesOfItsAuthors) {
  ExpectScoresOf("nomic-bert-classifier", {{"bert.encoder.layers.", "nomic_bert.layers."},
                                           {"bert.emb_ln.", "nomic_bert.embeddings.LayerNorm."},
                                           {"bert.", "nomic_bert."},
                                           {"attn.out_proj.", "self_attn.o_proj."},
                                           {"mlp.fc11.", "mlp.up_proj."},
                                           {"mlp.fc12.", "mlp.gate_proj."},
                                           {"mlp.fc2.", "mlp.down_proj."},
                                           {"norm1.", "post_attention_layernorm."},
                                           {"norm2.", "post_mlp_layernorm."}});
}

}  // namespace
}  // namespace linserve
