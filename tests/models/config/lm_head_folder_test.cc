// Hugging Face folders of sparse encoders: those of sentence-transformers, and those that the
// option `pooling` makes such.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "models/config/hugging_face_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SparseFolderTest : public HuggingFaceFixture {
 protected:
  SparseFolderTest() {
    Write(folder_, "config.json", "");
    const std::string made = Directory("transformers.BertForMaskedLM", kTinyBert);
    std::filesystem::copy_file(made + "/model.safetensors", folder_ + "/model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    WriteConfig({{"architectures", {"BertForMaskedLM"}}});
  }

  void WriteSparseModules(const json& splade, const std::string& transformer = "MLMTransformer",
                          const std::string& behind = "") {
    json modules = {
        {{"path", ""}, {"type", "sentence_transformers.sparse_encoder.models." + transformer}},
        {{"path", "1_SpladePooling"},
         {"type", "sentence_transformers.sparse_encoder.models.SpladePooling"}}};
    if (!behind.empty()) {
      modules.push_back({{"path", "2"}, {"type", "sentence_transformers.models." + behind}});
      WriteModule("2", json::object());
    }
    Write(folder_, "modules.json", modules.dump());
    WriteModule("1_SpladePooling", splade);
  }

  json Params() const { return ReadModelDirectory(folder_)->network.params; }
  std::string Architecture() const { return ReadModelDirectory(folder_)->network.architecture; }
};

TEST_F(SparseFolderTest, OfSentenceTransformersIsASparseEncoder) {
  WriteSparseModules({{"pooling_strategy", "sum"},
                      {"activation_function", "log1p_relu"},
                      {"word_embedding_dimension", 20}});
  EXPECT_EQ(Architecture(), "transformers.BertForMaskedLM");
  EXPECT_EQ(Params()["pooling_strategy"], "sum");
  EXPECT_EQ(Params()["activation_function"], "log1p_relu");
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().signature.outputs[0].name, "sparse_embedding");
  EXPECT_EQ(Compute(*model, {item_})[0].begin()->second.shape(), Shape{20});
}

TEST_F(SparseFolderTest, OfANewerVersionSaysItsTask) {
  WriteSparseModules({{"embedding_dimension", nullptr}}, "Transformer");
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "fill-mask"})");
  EXPECT_EQ(Architecture(), "transformers.BertForMaskedLM");
  EXPECT_EQ(Params()["pooling_strategy"], "max");
  EXPECT_EQ(Params()["activation_function"], "relu");
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "feature-extraction"})");
  EXPECT_THAT(Error(), HasSubstr("transformer_task is \"feature-extraction\", expected "
                                 "\"fill-mask\""));
}

TEST_F(SparseFolderTest, WithoutModulesIsAnEncoderUnlessAsked) {
  EXPECT_EQ(Architecture(), "transformers.BertModel");
  EXPECT_EQ(Error(), "");
  WriteConfig({{"architectures", {"BertForMaskedLM"}}, {"serving", {{"pooling", "splade"}}}});
  EXPECT_EQ(Architecture(), "transformers.BertForMaskedLM");
  EXPECT_EQ(Params()["pooling_strategy"], "max");
  EXPECT_EQ(Params()["activation_function"], "relu");
  EXPECT_EQ(Serving()["pooling"], "mean");
  EXPECT_EQ(Load(folder_)->info().signature.outputs[0].name, "sparse_embedding");
}

TEST_F(SparseFolderTest, HasTheDecoderUnderEitherNameOrBoth) {
  WriteSparseModules(json::object());
  const TensorMap expected = Rows(folder_);
  const auto file = ReadSafetensors(folder_ + "/model.safetensors");
  ASSERT_TRUE(file.ok());
  const Tensor words = file->tensors.at("bert.embeddings.word_embeddings.weight");
  const std::string decoder = "cls.predictions.decoder.";
  RenameTensors(
      [&](const std::string& name) {
        if (name == decoder + "weight")
          return std::string("bert.embeddings.word_embeddings.weight");
        return name == decoder + "bias" ? std::string("cls.predictions.bias") : name;
      },
      {{decoder + "weight", words}, {"cls.seq_relationship.weight", words}});
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
  RenameTensors([&](const std::string& name) {
    if (name == decoder + "weight") return std::string();
    return name == "cls.predictions.transform.LayerNorm.weight"
               ? std::string("cls.predictions.transform.LayerNorm.gamma")
               : name;
  });
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
}

TEST_F(SparseFolderTest, WithoutItsHeadIsRefusedByTheTensorsThatAreMissing) {
  WriteSparseModules(json::object());
  RenameTensors([](const std::string& name) {
    return name.starts_with("cls.predictions.transform.") ? "" : name;
  });
  EXPECT_THAT(Error(), AllOf(HasSubstr("missing from the file (4):"),
                             HasSubstr("cls.predictions.transform.dense.weight [8, 8]")));
}

TEST_F(SparseFolderTest, WithADecoderOfItsOwnNeedsItsTensors) {
  WriteConfig({{"tie_word_embeddings", false}});
  WriteSparseModules(json::object());
  RenameTensors([](const std::string& name) {
    return name.starts_with("cls.predictions.decoder.") ? "" : name;
  });
  EXPECT_THAT(Error(), HasSubstr("cls.predictions.decoder.weight [20, 8]"));
}

TEST_F(SparseFolderTest, WithWhatIsNotComputedIsRefusedByName) {
  WriteSparseModules({{"pooling_strategy", "mean"}});
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("1_SpladePooling/config.json"),
                    HasSubstr("\"pooling_strategy\" is \"mean\", expected one of max, sum")));
  WriteSparseModules({{"activation_function", "gelu"}});
  EXPECT_THAT(Error(), HasSubstr("expected one of relu, log1p_relu"));
  WriteSparseModules({{"top_k", 3}});
  EXPECT_THAT(Error(), HasSubstr("\"top_k\""));
  WriteSparseModules(json::object(), "MLMTransformer", "Normalize");
  EXPECT_THAT(Error(), HasSubstr("'Normalize' is not computed behind SpladePooling"));
  for (const char* kind : {"SparseStaticEmbedding", "Router", "SparseAutoEncoder", "IDF"}) {
    Write(folder_, "modules.json",
          json{{{"path", ""},
                {"type", std::string("sentence_transformers.sparse_encoder.models.") + kind}}}
              .dump());
    EXPECT_THAT(Error(), AllOf(HasSubstr(std::string("'") + kind + "' is not computed"),
                               HasSubstr("MLMTransformer and SpladePooling")));
  }
  WriteModules({"MLMTransformer", "Pooling"});
  WriteModule("1_Pooling", {{"pooling_mode_cls_token", true}});
  EXPECT_THAT(Error(), HasSubstr("logits are pooled by SpladePooling alone"));
}

TEST_F(SparseFolderTest, OfAnotherModelIsRefusedWithThoseThatAreTaken) {
  WriteSparseModules(json::object());
  WriteConfig({{"model_type", "nystromformer"}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("not made of transformers.NystromformerModel"),
                             HasSubstr("transformers.DistilBertForMaskedLM")));
}

TEST_F(SparseFolderTest, OptionContradictsModulesBehindThePooling) {
  WriteConfig({{"serving", {{"pooling", "splade"}}}});
  WriteModules({"Transformer", "Pooling", "Normalize"});
  WriteModule("1_Pooling", {{"pooling_mode_mean_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("\"pooling\" is \"splade\", but modules.json has modules behind"));
}

constexpr const char* kTinyQwen =
    R"({"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 16,
        "max_position_embeddings": 12, "tie_word_embeddings": true})";

// A folder of a re-ranker that answers by words, as a language model lies on the hub.
class AnsweringFolderTest : public HuggingFaceFixture {
 protected:
  AnsweringFolderTest() {
    Write(folder_, "config.json", "");
    const std::string made = Directory("transformers.Qwen3Model", kTinyQwen);
    const auto file = ReadSafetensors(made + "/model.safetensors");
    TensorMap tensors;
    for (const auto& [name, tensor] : file->tensors) tensors["model." + name] = tensor;
    EXPECT_TRUE(WriteSafetensors(folder_ + "/model.safetensors", tensors).ok());
    WriteConfig(json::object());
  }

  void WriteConfig(const json& serving, const json& more = json::object()) {
    json config = json::parse(kTinyQwen);
    config.update({{"model_type", "qwen3"}, {"architectures", {"Qwen3ForCausalLM"}}});
    config.update(more);
    if (!serving.empty()) config["serving"] = serving;
    Write(folder_, "config.json", config.dump());
  }

  float Score() { return Compute(*Load(folder_), {item_})[0].at("logits").data<float>()[0]; }
};

TEST_F(AnsweringFolderTest, IsAnEncoderUnlessItIsToldWhichTokensAreTheAnswers) {
  EXPECT_EQ(ReadModelDirectory(folder_)->network.architecture, "transformers.Qwen3Model");
  WriteConfig({{"true_token_id", 3}, {"false_token_id", 5}});
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().architecture, "transformers.Qwen3ForCausalLM");
  EXPECT_EQ(*model->info().labels, std::vector<std::string>{"LABEL_0"});
  EXPECT_FALSE(Serving().contains("true_token_id"));
}

TEST_F(AnsweringFolderTest, IsPooledByItsLastTokenUnlessItsRowsSeeEachOther) {
  EXPECT_EQ(Serving()["pooling"], "last");
  WriteConfig(json::object(), {{"is_causal", false}});
  EXPECT_EQ(Serving()["pooling"], "mean");
  WriteConfig(json::object(), {{"architectures", {"Qwen3Model"}}});
  EXPECT_EQ(Serving()["pooling"], "mean");
}

TEST_F(AnsweringFolderTest, ScoresTheOneTokenLessTheOther) {
  const auto alone = [&](int token) {
    WriteConfig({{"true_token_id", token}});
    return Score();
  };
  const float yes = alone(3);
  const float no = alone(5);
  WriteConfig({{"true_token_id", 3}, {"false_token_id", 5}});
  EXPECT_NE(yes, no);
  EXPECT_NEAR(Score(), yes - no, 1e-5);
}

TEST_F(AnsweringFolderTest, OfSentenceTransformersSaysItInItsModules) {
  const std::string type = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore";
  Write(folder_, "modules.json",
        json{{{"path", ""}, {"type", "sentence_transformers.base.modules.transformer.Transformer"}},
             {{"path", "1_LogitScore"}, {"type", type}}}
            .dump());
  WriteModule(
      "1_LogitScore",
      {{"true_token_id", 3}, {"false_token_id", nullptr}, {"module_input_name", "causal_logits"}});
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "text-generation"})");
  const float score = Score();
  std::filesystem::remove(folder_ + "/modules.json");
  EXPECT_THAT(Error(), HasSubstr("LogitScore alone makes a score"));
  std::filesystem::remove(folder_ + "/sentence_bert_config.json");
  WriteConfig({{"true_token_id", 3}});
  EXPECT_EQ(Score(), score);
}

TEST_F(AnsweringFolderTest, WithAChatTemplateWantsTheTextInWhichPairsAreWritten) {
  Write(folder_, "chat_template.jinja", "{{ messages }}");
  EXPECT_EQ(Error(), "");
  WriteConfig({{"true_token_id", 3}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("pair_template"), HasSubstr("{document}")));
  WriteConfig({{"true_token_id", 3}, {"pair_template", "{query} {document}"}});
  EXPECT_EQ(Error(), "");
}

TEST_F(AnsweringFolderTest, WhatIsNoTokenOrNoLanguageModelIsRefused) {
  WriteConfig({{"true_token_id", 20}});
  EXPECT_THAT(Error(),
              HasSubstr("\"true_token_id\" is 20, expected a token's id, below vocab_size"));
  WriteConfig({{"true_token_id", "yes"}});
  EXPECT_THAT(Error(), HasSubstr("'true_token_id' is \"yes\", expected a token's id"));
  WriteConfig({{"false_token_id", 2}});
  EXPECT_THAT(Error(), HasSubstr("true_token_id"));
  WriteConfig({{"true_token_id", 3}}, {{"model_type", "eurobert"}});
  EXPECT_THAT(Error(), HasSubstr("scores of answers are not made of transformers.EuroBertModel"));
}

}  // namespace
}  // namespace linserve
