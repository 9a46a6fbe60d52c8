// A Hugging Face folder is served as it is: what its files say, and what its checkpoint holds.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "models/config/hugging_face_fixture.h"
#include "models/inspect_model.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using HuggingFaceTest = HuggingFaceFixture;

TEST_F(HuggingFaceTest, IsKnownByItsModelType) {
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().architecture, "transformers.BertModel");
  EXPECT_EQ(model->info().signature.outputs[0].name, "last_hidden_state");
  EXPECT_NE(model->info().signature.FindOutput("pooler_output"), nullptr);
  EXPECT_EQ(model->info().signature.limits[0].longest, 12);
}

TEST_F(HuggingFaceTest, OfATypeThatIsNotServedIsRefusedWithThoseThatAre) {
  WriteConfig({{"model_type", "gpt2"}});
  EXPECT_THAT(Error(), HasSubstr("model_type 'gpt2' is not served"));
  EXPECT_THAT(Error(), HasSubstr("distilbert"));
}

TEST_F(HuggingFaceTest, WithAValueThatIsNotComputedIsRefusedByName) {
  WriteConfig({{"hidden_act", "prelu"}});
  EXPECT_THAT(Error(), HasSubstr("parameter \"hidden_act\" is \"prelu\", expected one of gelu"));
  WriteConfig({{"position_embedding_type", "relative_key"}});
  EXPECT_THAT(Error(), HasSubstr("expected one of absolute"));
  for (const char* flag : {"is_decoder", "is_causal"}) {
    WriteConfig({{flag, true}});
    EXPECT_THAT(Error(), HasSubstr("only encoders are computed")) << flag;
  }
  WriteConfig({{"model_type", "modernbert"}, {"is_causal", true}});
  EXPECT_THAT(Error(), HasSubstr("only encoders are computed"));
  WriteConfig({{"model_type", "modernbert"}, {"sliding_window", 32}});
  EXPECT_THAT(Error(), HasSubstr("local_attention"));
}

TEST_F(HuggingFaceTest, WithCodeOfItsOwnIsRefusedUntilItSaysWhatThatComputes) {
  const auto error = [this](const char* type, const json& more = json::object()) {
    json config = {{"model_type", type}, {"auto_map", {{"AutoModel", "modeling_own.OwnModel"}}}};
    config.update(more);
    WriteConfig(config);
    return std::string(ReadModelDirectory(folder_).status().message());
  };
  for (const char* type : {"qwen2", "qwen3", "mistral", "llama"}) {
    EXPECT_THAT(error(type), HasSubstr("'modeling_own.OwnModel', which is not run here; write "
                                       "\"is_causal\": false"));
    for (const bool causal : {false, true}) {
      EXPECT_EQ(error(type, {{"is_causal", causal}}), "") << type;
    }
  }
  EXPECT_THAT(error("bert", {{"is_causal", false}}), HasSubstr("remove 'AutoModel' from auto_map"));
  EXPECT_EQ(error("bert", {{"auto_map", {{"AutoConfig", "own.Config"}}}}), "");
  EXPECT_EQ(error("bert", {{"position_embedding_type", "alibi"}}), "");
  for (const char* type : {"nomic_bert", "new", "eurobert", "molformer"}) {
    EXPECT_EQ(error(type), "") << type;
  }
  const json scores = {{"AutoModelForSequenceClassification", "own.Scores"}};
  EXPECT_EQ(error("roberta", {{"auto_map", scores}}), "");
  EXPECT_THAT(error("roberta", {{"auto_map", scores},
                                {"architectures", {"RobertaForSequenceClassification"}}}),
              HasSubstr("'own.Scores'"));
}

TEST_F(HuggingFaceTest, OfAnotherTaskIsServedWithoutItsHead) {
  const TensorMap expected = Rows(folder_);
  RenameTensors([](const std::string& name) { return "bert." + name; },
                {{"cls.predictions.bias", RandomFloats({20})}});
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
}

TEST_F(HuggingFaceTest, OfAnotherTaskMayHaveItsHeadBesideTheModelItself) {
  const TensorMap expected = Rows(folder_);
  RenameTensors(
      [](const std::string& name) { return name; },
      {{"classifier.weight", RandomFloats({2, 8})}, {"embeddings.position_ids", Ids(12, 12)}});
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
  EXPECT_THAT(InspectModel(folder_)->warnings, IsEmpty());
}

TEST_F(HuggingFaceTest, OfOtherWeightsIsServedWithAWarningThatNamesThem) {
  const std::string path = folder_ + "/model.safetensors";
  const TensorMap own = ReadSafetensors(path)->tensors;
  const auto warned = [&](const std::string& prefix, const std::string& stranger) {
    TensorMap tensors = {{stranger, RandomFloats({8})}};
    for (const auto& [name, tensor] : own) tensors[prefix + name] = tensor;
    EXPECT_TRUE(WriteSafetensors(path, tensors).ok());
    const std::vector<std::string> warnings = InspectModel(folder_)->warnings;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(LoadModel(folder_, {}).ok());
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find("WARN") != std::string::npos, !warnings.empty()) << log;
    return !warnings.empty() && warnings[0].find(stranger) != std::string::npos;
  };
  for (const std::string prefix : {"", "bert."}) {
    for (const char* name : {"encoder.layer.2.output.dense.bias", "embeddings.norm.weight",
                             "encoder.layer.0.attention.self.query_norm.weight"}) {
      EXPECT_TRUE(warned(prefix, prefix + name)) << name;
    }
    EXPECT_FALSE(warned(prefix, prefix + "adapters.0.weight"));
    EXPECT_FALSE(warned(prefix, "cls.predictions.bias"));
  }
}

TEST_F(HuggingFaceTest, WithFewerLayersThanItsFileIsServedWithAWarning) {
  WriteConfig({{"num_hidden_layers", 1}});
  EXPECT_THAT(InspectModel(folder_)->warnings,
              ElementsAre(AllOf(HasSubstr("has 16 of which"), HasSubstr("encoder.layer.1."))));
}

TEST_F(HuggingFaceTest, WithoutItsPoolingLayerGivesRowsOnly) {
  RenameTensors(
      [](const std::string& name) { return name.starts_with("pooler.") ? "" : "bert." + name; });
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().signature.FindOutput("pooler_output"), nullptr);
}

TEST_F(HuggingFaceTest, OfNystromformerHasItsOwnDefaults) {
  const std::string nystromformer = Directory("transformers.NystromformerModel", kTinyBert);
  std::filesystem::copy_file(nystromformer + "/model.safetensors", folder_ + "/model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  WriteConfig({{"model_type", "nystromformer"}, {"add_cross_attention", false}});
  EXPECT_EQ(LargestDifference(Rows(folder_), Rows(nystromformer)), 0);
}

TEST_F(HuggingFaceTest, OfDebertaHasItsOwnDefaults) {
  const std::string deberta = Directory("transformers.DebertaV2Model", kTinyBert);
  std::filesystem::copy_file(deberta + "/model.safetensors", folder_ + "/model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  WriteConfig({{"model_type", "deberta-v2"},
               {"position_buckets", 256},
               {"pooler_hidden_act", "gelu"},
               {"legacy", true}});
  EXPECT_EQ(LargestDifference(Rows(folder_), Rows(deberta)), 0);
}

TEST_F(HuggingFaceTest, OfJinaBertIsKnownByItsPositions) {
  const auto architecture = [this](json config) {
    config.update({{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}});
    WriteConfig(config);
    const auto read = ReadModelDirectory(folder_);
    EXPECT_TRUE(read.ok()) << read.status();
    return read->network.architecture + (read->network.params["qk_norm"] == true ? ", later" : "");
  };
  EXPECT_EQ(architecture(json::object()), "jina_bert.JinaBertModel");
  EXPECT_EQ(architecture({{"architectures", {"JinaBertForSequenceClassification"}}}),
            "jina_bert.JinaBertForSequenceClassification");
  RenameTensors([](const std::string& name) { return "bert." + name; },
                {{"bert.encoder.layer.0.attention.self.layer_norm_q.weight", RandomFloats({8})}});
  EXPECT_EQ(architecture(json::object()), "jina_bert.JinaBertModel, later");
  WriteConfig({{"model_type", "roberta"}, {"position_embedding_type", "alibi"}});
  EXPECT_THAT(Error(), HasSubstr("expected one of absolute"));
}

TEST_F(HuggingFaceTest, OfWhichATensorIsMissingIsRefused) {
  RenameTensors([](const std::string& name) {
    return name == "encoder.layer.1.output.dense.bias" ? "" : "bert." + name;
  });
  EXPECT_THAT(Error(),
              HasSubstr("missing from the file (1):\n    encoder.layer.1.output.dense.bias"));
}

TEST_F(HuggingFaceTest, HasNormsUnderTheNamesOfTensorFlow) {
  const TensorMap expected = Rows(folder_);
  RenameTensors([](std::string name) {
    for (const auto& [from, to] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
      if (name.ends_with(from))
        name.replace(name.size() - std::string(from).size(), std::string::npos, to);
    }
    return name;
  });
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
}

TEST_F(HuggingFaceTest, TakesTheLengthOfTextsAndThePromptsOfSentenceTransformers) {
  Write(folder_, "tokenizer_config.json",
        R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_FALSE(Serving().contains("max_text_tokens"));
  Write(folder_, "tokenizer_config.json", R"({"model_max_length": 11})");
  EXPECT_EQ(Serving()["max_text_tokens"], 11);
  Write(folder_, "tokenizer_config.json", R"({"max_len": 10})");
  EXPECT_EQ(Serving()["max_text_tokens"], 10);
  Write(folder_, "sentence_bert_config.json", R"({"max_seq_length": 9, "do_lower_case": false})");
  Write(folder_, "config_sentence_transformers.json", R"({"prompts": {"query": "query: "}})");
  EXPECT_EQ(Serving()["max_text_tokens"], 9);
  EXPECT_EQ(Serving()["truncation"], "right");
  EXPECT_EQ(Serving()["prompts"]["query"], "query: ");
  EXPECT_FALSE(Serving().contains("default_prompt"));
  Write(folder_, "config_sentence_transformers.json",
        R"({"prompts": {"query": "query: ", "passage": null}, "default_prompt_name": "query"})");
  EXPECT_EQ(Serving()["default_prompt"], "query");
  EXPECT_EQ(Serving()["prompts"].size(), 1U);
  Write(folder_, "sentence_bert_config.json",
        R"({"max_seq_length": 9, "tokenizer_args": {"model_max_length": 7}})");
  EXPECT_EQ(Serving()["max_text_tokens"], 7);
  std::filesystem::rename(folder_ + "/sentence_bert_config.json",
                          folder_ + "/sentence_xlm-roberta_config.json");
  Write(folder_, "sentence_bert_config.json", "{}");
  EXPECT_EQ(Serving()["max_text_tokens"], 7);
}

TEST_F(HuggingFaceTest, SaysWhichMemberOfWhichFileLimitsItsTexts) {
  const auto origin = [this] { return ReadModelDirectory(folder_)->text_limit_origin; };
  EXPECT_EQ(origin(), "");
  Write(folder_, "tokenizer_config.json", R"({"model_max_length": 11})");
  EXPECT_EQ(origin(), "model_max_length in tokenizer_config.json");
  Write(folder_, "sentence_roberta_config.json", R"({"max_seq_length": 9})");
  EXPECT_EQ(origin(), "max_seq_length in sentence_roberta_config.json");
  WriteConfig({{"serving", {{"max_text_tokens", 5}}}});
  EXPECT_EQ(origin(), "");
}

TEST_F(HuggingFaceTest, IsServedAsItsConfigSaysBeforeItsOtherFiles) {
  WriteModules({"Transformer", "Pooling", "Normalize"});
  WriteModule("1_Pooling", {{"pooling_mode_max_tokens", true}});
  Write(folder_, "sentence_bert_config.json", R"({"max_seq_length": 9})");
  Write(folder_, "config_sentence_transformers.json", R"({"prompts": {"query": "query: "}})");
  EXPECT_TRUE(ReadModelDirectory(folder_)->tokenizer_truncates);
  const std::string before = Load(folder_)->info().fingerprint;
  const json own = {{"pooling", "cls"}, {"normalize", false},     {"max_text_tokens", 5},
                    {"nonsense", 1},    {"truncation", "none"},   {"prompts", {{"q", "q: "}}},
                    {"dtype", "f32"},   {"max_batch_tokens", 777}};
  WriteConfig({{"serving", own}});
  EXPECT_EQ(Serving(), own);
  EXPECT_FALSE(ReadModelDirectory(folder_)->tokenizer_truncates);
  EXPECT_EQ(Load(folder_)->info().fingerprint, before);
  WriteConfig({{"serving", {{"max_batch_tokens", 777}}}});
  EXPECT_EQ(Serving()["pooling"], "max");
  EXPECT_EQ(Serving()["max_text_tokens"], 9);
  WriteConfig({{"serving", "cls"}});
  EXPECT_THAT(Error(), HasSubstr("/config.json: \"serving\" must be an object"));
}

TEST_F(HuggingFaceTest, WithRotaryPositionsTakesTextsAsLongAsItsSentenceFileSays) {
  const auto longest = [this](const char* type) {
    WriteConfig({{"model_type", type}});
    return InspectModel(folder_, /*look_at_weights=*/false)->info.signature.limits[0].longest;
  };
  for (const char* type : {"modernbert", "nomic_bert", "gte"}) EXPECT_EQ(longest(type), 12) << type;
  Write(folder_, "sentence_bert_config.json", R"({"max_seq_length": 30})");
  for (const char* type : {"modernbert", "nomic_bert", "gte"}) EXPECT_EQ(longest(type), 30) << type;
  EXPECT_EQ(longest("bert"), 12);
  EXPECT_EQ(Serving()["max_text_tokens"], 30);
}

TEST_F(HuggingFaceTest, WithSettingsThatCannotBeFollowedIsRefused) {
  constexpr const char* kPrompts = "config_sentence_transformers.json";
  Write(folder_, kPrompts, R"({"prompts": {"query": 7}})");
  EXPECT_THAT(Error(), HasSubstr("config_sentence_transformers.json: the prompt 'query'"));
  Write(folder_, kPrompts, R"({"prompts": {}, "default_prompt_name": "query"})");
  EXPECT_THAT(Error(), HasSubstr("default_prompt_name is \"query\", expected a name"));
  Write(folder_, kPrompts, R"({"truncate_dim": 4})");
  EXPECT_THAT(Error(), HasSubstr("truncate_dim 4 cuts every vector"));
  Write(folder_, kPrompts, R"({"truncate_dim": null})");
  Write(folder_, "sentence_bert_config.json",
        R"({"processor_kwargs": {"truncation_side": "left"}})");
  EXPECT_THAT(Error(), HasSubstr("'processor_kwargs' changes tokenizer_config.json"));
  Write(folder_, "sentence_bert_config.json", R"({"config_args": {"hidden_act": "relu"}})");
  EXPECT_THAT(Error(), HasSubstr("sentence_bert_config.json: 'config_args' changes config.json"));
  Write(folder_, "sentence_bert_config.json", R"({"config_args": {"trust_remote_code": true}})");
  EXPECT_EQ(Error(), "");
  Write(folder_, "adapter_config.json", "{}");
  EXPECT_THAT(Error(), HasSubstr("the folder is an adapter"));
}

TEST_F(HuggingFaceTest, WithAdaptersBesideTheModelIsServedWithAWarningThatNamesThem) {
  for (const char* adapter : {"retrieval_query", "classification"}) {
    std::filesystem::create_directory(folder_ + "/" + adapter);
    Write(folder_ + "/" + adapter, "adapter_config.json", "{}");
  }
  EXPECT_THAT(InspectModel(folder_)->warnings,
              ElementsAre(HasSubstr("without its adapters ('classification', 'retrieval_query')")));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(LoadModel(folder_, {}).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("without its adapters"));
}

TEST_F(HuggingFaceTest, WithScaledPositionsIsRefused) {
  for (const char* type : {"gte", "modernbert", "nomic_bert", "jina_embeddings_v3"}) {
    WriteConfig({{"model_type", type}, {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}});
    EXPECT_THAT(Error(), HasSubstr("\"type\" is \"linear\", expected one of default")) << type;
    WriteConfig({{"model_type", type}, {"rope_scaling", {{"rope_type", "default"}}}});
    EXPECT_THAT(Error(), Not(HasSubstr("rope"))) << type;
  }
  WriteConfig({{"model_type", "modernbert"}, {"rope_parameters", {{"rope_theta", 50000}}}});
  EXPECT_THAT(Error(), HasSubstr("for each type of layers"));
  WriteConfig({{"model_type", "modernbert"}, {"rope_parameters", {{"rope_type", "yarn"}}}});
  EXPECT_THAT(Error(), HasSubstr("\"rope_type\" is \"yarn\""));
  WriteConfig({{"model_type", "gte"}, {"rope_parameters", {{"type", "ntk"}}}});
  EXPECT_THAT(Error(), HasSubstr("\"type\" is \"ntk\""));
  WriteConfig({{"model_type", "new"}, {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}});
  EXPECT_THAT(Error(), HasSubstr("\"type\" is \"linear\", expected one of ntk"));
  WriteConfig({{"model_type", "new"}, {"rope_scaling", {{"type", "ntk"}, {"mixed_b", 0.6}}}});
  EXPECT_THAT(Error(), HasSubstr("mixed_b"));
  WriteConfig({{"model_type", "new"}, {"rope_scaling", {{"type", "ntk"}, {"factor", 8.0}}}});
  EXPECT_THAT(Error(), Not(HasSubstr("rope")));
  WriteConfig({{"model_type", "new"}, {"layer_norm_type", "rms_norm"}});
  EXPECT_THAT(Error(), HasSubstr("layer_norm_type"));
  WriteConfig({{"model_type", "gte"}, {"logn_attention_scale", true}});
  EXPECT_THAT(Error(), HasSubstr("logn_attention_scale"));
}

TEST_F(HuggingFaceTest, VectorsMayBeCutToTheWidthsThatTheModelWasTrainedFor) {
  EXPECT_FALSE(Serving().contains("dimensions"));
  WriteConfig({{"matryoshka_dimensions", {4, 2}}});
  EXPECT_EQ(Serving()["dimensions"], json({4, 2}));
  WriteConfig({{"matryoshka_dimensions", {4, 2}}, {"serving", {{"dimensions", {6}}}}});
  EXPECT_EQ(Serving()["dimensions"], json({6}));
}

}  // namespace
}  // namespace linserve
