// A Hugging Face folder is served as it is: what its files say, and what its checkpoint holds.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "attention/rows/aten.h"
#include "core/files/safetensors.h"
#include "models/inspect_model.h"
#include "models/model_directory.h"
#include "models/model_fixture.h"
#include "models/placement/tensor_bridge.h"
#include "models/simulated.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSizes =
    R"({"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 12})";

class HuggingFaceTest : public ModelFixture {
 protected:
  HuggingFaceTest() { WriteConfig(json::object()); }

  // Writes a config.json as the hub has them, with these members besides.
  void WriteConfig(const json& more) {
    json config = json::parse(kSizes);
    config.update({{"model_type", "bert"},
                   {"architectures", {"BertModel"}},
                   {"transformers_version", "4.8.2"},
                   {"gradient_checkpointing", false}});
    config.update(more);
    Write(folder_, "config.json", config.dump());
  }

  void WriteModule(const std::string& name, const json& config) {
    std::filesystem::create_directories(folder_ + "/" + name);
    Write(folder_ + "/" + name, "config.json", config.dump());
  }

  // Writes modules.json with modules of these types, whose paths are 1_Pooling and 2_Dense.
  void WriteModules(const std::vector<std::string>& types) {
    json modules = json::array();
    for (const std::string& type : types) {
      const std::string path = type == "Pooling" ? "1_Pooling" : type == "Dense" ? "2_Dense" : "";
      modules.push_back({{"path", path}, {"type", "sentence_transformers.models." + type}});
    }
    Write(folder_, "modules.json", modules.dump());
  }

  // Lets the pooled rows go through a Dense module, too.
  void WriteDenseModule(const std::string& pooling = "mean_tokens") {
    WriteModules({"Transformer", "Pooling", "Dense", "Normalize"});
    WriteModule("1_Pooling", {{"pooling_mode_" + pooling, true}});
    WriteModule("2_Dense", {{"in_features", 8},
                            {"out_features", 5},
                            {"bias", true},
                            {"activation_function", "torch.nn.modules.activation.Tanh"}});
    ASSERT_TRUE(WriteSafetensors(folder_ + "/2_Dense/model.safetensors",
                                 {{"linear.weight", weight_}, {"linear.bias", bias_}})
                    .ok());
  }

  json Serving() const { return ReadModelDirectory(folder_)->serving; }
  std::string Error() const { return std::string(LoadModel(folder_, {}).status().message()); }

  // Rewrites the checkpoint with other names. A name that becomes empty is left out.
  template <typename Rename>
  void RenameTensors(const Rename& rename, const TensorMap& more = {}) {
    const std::string path = folder_ + "/model.safetensors";
    TensorMap tensors = more;
    const auto file = ReadSafetensors(path);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const auto& [name, tensor] : file->tensors) {
      if (const std::string renamed = rename(name); !renamed.empty()) tensors[renamed] = tensor;
    }
    ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  }

  TensorMap Rows(const std::string& directory) { return Compute(*Load(directory), {item_})[0]; }

  const std::string folder_ = Directory("transformers.BertModel", kSizes);
  const Item item_ = Tokens(7, 20);
  const Tensor weight_ = RandomFloats({5, 8});
  const Tensor bias_ = RandomFloats({5});
};

TEST_F(HuggingFaceTest, IsKnownByItsModelType) {
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().architecture, "transformers.BertModel");
  EXPECT_EQ(model->info().signature.outputs[0].name, "last_hidden_state");
  EXPECT_NE(model->info().signature.FindOutput("pooler_output"), nullptr);
  EXPECT_EQ(model->info().signature.limits[0].longest, 12);
}

TEST_F(HuggingFaceTest, OfATypeThatIsNotServedIsRefusedWithThoseThatAre) {
  WriteConfig({{"model_type", "llama"}});
  EXPECT_THAT(Error(), HasSubstr("model_type 'llama' is not served"));
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
}

TEST_F(HuggingFaceTest, WithoutItsPoolingLayerGivesRowsOnly) {
  RenameTensors(
      [](const std::string& name) { return name.starts_with("pooler.") ? "" : "bert." + name; });
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().signature.FindOutput("pooler_output"), nullptr);
}

TEST_F(HuggingFaceTest, OfNystromformerHasItsOwnDefaults) {
  const std::string nystromformer = Directory("transformers.NystromformerModel", kSizes);
  std::filesystem::copy_file(nystromformer + "/model.safetensors", folder_ + "/model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  WriteConfig({{"model_type", "nystromformer"}, {"add_cross_attention", false}});
  EXPECT_EQ(LargestDifference(Rows(folder_), Rows(nystromformer)), 0);
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

TEST_F(HuggingFaceTest, IsPooledByTheMeanUnlessItsModulesSayOtherwise) {
  EXPECT_EQ(Serving()["pooling"], "mean");
  EXPECT_FALSE(Serving().contains("normalize"));
  WriteModules({"Transformer", "Pooling", "Normalize"});
  for (const auto& [flag, pooling] : {std::pair{"pooling_mode_cls_token", "cls"},
                                      {"pooling_mode_max_tokens", "max"},
                                      {"pooling_mode_mean_tokens", "mean"},
                                      {"pooling_mode_lasttoken", "last"}}) {
    WriteModule("1_Pooling", {{"word_embedding_dimension", 8}, {flag, true}});
    EXPECT_EQ(Serving()["pooling"], pooling);
  }
  for (const json& mode : {json("cls"), json::array({"cls"})}) {
    WriteModule("1_Pooling", {{"pooling_mode", mode}, {"pooling_mode_max_tokens", true}});
    EXPECT_EQ(Serving()["pooling"], "cls");
  }
  for (const json& none : {json{{"embedding_dimension", 8}}, {{"pooling_mode_cls_token", false}}}) {
    WriteModule("1_Pooling", none);
    EXPECT_EQ(Serving()["pooling"], "mean");
  }
  EXPECT_EQ(Serving()["normalize"], true);
}

TEST_F(HuggingFaceTest, WithAModuleOrAPoolingThatIsNotComputedIsRefusedByName) {
  WriteModules({"Transformer", "Pooling"});
  WriteModule("1_Pooling", {{"pooling_mode_cls_token", true}, {"pooling_mode_max_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("1_Pooling/config.json pools by cls and max"));
  WriteModule("1_Pooling", {{"pooling_mode_mean_sqrt_len_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("pools by mean_sqrt_len_tokens, expected one of cls"));
  WriteModule("1_Pooling", {{"pooling_mode_weightedmean_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("pools by weightedmean, expected one of cls"));
  WriteModule("1_Pooling", {{"pooling_mode", {"mean", "own"}}});
  EXPECT_THAT(Error(), HasSubstr("pools by nothing that is known"));
  WriteModule("1_Pooling", {{"include_prompt", false}});
  EXPECT_EQ(Serving()["pooling"], "mean");
  Write(folder_, "config_sentence_transformers.json", R"({"prompts": {"query": "query: "}})");
  EXPECT_THAT(Error(), HasSubstr("a prompt's tokens are pooled, too"));
  WriteModule("1_Pooling", {{"by", "mean"}});
  EXPECT_THAT(Error(), HasSubstr("\"by\""));
  WriteModules({"Transformer", "Normalize", "Pooling"});
  EXPECT_THAT(Error(), HasSubstr("Normalize behind Pooling"));
  WriteModules({"Transformer", "CNN"});
  EXPECT_THAT(Error(), HasSubstr("a module of type 'CNN' is not computed"));
  Write(folder_, "modules.json",
        R"([{"type": "sentence_transformers.models.Transformer", "path": "0_Transformer"}])");
  EXPECT_THAT(Error(), HasSubstr("the Transformer's files are in '0_Transformer'; move them"));
  std::filesystem::create_directories(folder_ + "/0_Transformer");
  std::filesystem::rename(folder_ + "/config.json", folder_ + "/0_Transformer/config.json");
  EXPECT_THAT(Error(), HasSubstr("/0_Transformer, as they were with old versions"));
}

TEST_F(HuggingFaceTest, WithModulesThatCannotBeReadIsRefused) {
  WriteModules({"Transformer", "Pooling"});
  EXPECT_THAT(Error(), HasSubstr("modules.json names '1_Pooling/config.json', which is no object"));
  WriteModules(std::vector<std::string>(17, "Normalize"));
  EXPECT_THAT(Error(), HasSubstr("expected a list of at most 16 modules"));
  Write(folder_, "modules.json", R"([{"type": "x.Pooling", "path": "../1_Pooling"}])");
  EXPECT_THAT(Error(), HasSubstr("type 'x.Pooling' is code of the folder's own"));
  for (const char* path : {"../1_Pooling", "..", "a/b", "/1_Pooling"}) {
    const json module = {{"type", "sentence_transformers.models.Pooling"}, {"path", path}};
    Write(folder_, "modules.json", json::array({module}).dump());
    EXPECT_THAT(Error(), HasSubstr("is not that of a folder in the model's"));
  }
  for (const char* text : {"7", "[7]", R"([{"type": 7}])", R"([{"type": "Pooling", "path": 7}])"}) {
    Write(folder_, "modules.json", text);
    EXPECT_NE(Error(), "") << text;
  }
}

TEST_F(HuggingFaceTest, WithDenseModulesGivesTheVectorThatTheyMakeOfThePooledRows) {
  WriteDenseModule();
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().signature.outputs[0].name, "sentence_embedding");
  Item item = item_;
  item.options.outputs = {"sentence_embedding", "last_hidden_state"};
  const TensorMap results = Compute(*model, {item})[0];
  const at::Tensor mean = ToAten(results.at("last_hidden_state")).mean(0);
  const at::Tensor expected = at::tanh(at::linear(mean, ToAten(weight_), ToAten(bias_)));
  EXPECT_LT((ToAten(results.at("sentence_embedding")) - expected).abs().max().item<float>(), 1e-6);
}

TEST_F(HuggingFaceTest, WithADenseModuleTakesActivationsByTheirClass) {
  WriteDenseModule();
  WriteModules({"Transformer", "Pooling", "Dropout", "Dense"});
  json config = {{"in_features", 8},
                 {"out_features", 5},
                 {"activation_function", "torch.nn.modules.activation.Mish"}};
  WriteModule("2_Dense", config);
  Item item = item_;
  item.options.outputs = {"sentence_embedding", "last_hidden_state"};
  const TensorMap results = Compute(*Load(folder_), {item})[0];
  const at::Tensor mean = ToAten(results.at("last_hidden_state")).mean(0);
  const at::Tensor expected = at::mish(at::linear(mean, ToAten(weight_), ToAten(bias_)));
  EXPECT_LT((ToAten(results.at("sentence_embedding")) - expected).abs().max().item<float>(), 1e-6);
}

TEST_F(HuggingFaceTest, WithADenseModuleAsksADeviceOnceForAllSequences) {
  Simulated();
  for (const char* pooling : {"mean_tokens", "cls_token", "lasttoken", "max_tokens"}) {
    SCOPED_TRACE(pooling);
    WriteDenseModule(pooling);
    std::vector<Item> items;
    for (const int64_t length : {5, 1, 9, 9}) items.push_back(Tokens(length, 20));
    const std::vector<TensorMap> expected = Compute(*Load(folder_), items);
    for (const char* dtype : {"f32", "bf16"}) {
      ModelLoadOptions options;
      options.device = "simulated:0";
      options.dtype = dtype;
      const auto model = Load(folder_, options);
      ASSERT_TRUE(model->Prepare().ok());
      const auto launches = [&](const std::vector<Item>& some) {
        const int64_t before = Simulated().launches();
        Compute(*model, some, model->info().padding);
        return Simulated().launches() - before;
      };
      EXPECT_EQ(launches({items[0], items[1]}), launches(items)) << dtype;
      const std::vector<TensorMap> computed = Compute(*model, items, model->info().padding);
      for (size_t i = 0; i < items.size(); ++i) {
        EXPECT_GE(SmallestCosine(computed[i].at("sentence_embedding"),
                                 expected[i].at("sentence_embedding")),
                  0.999)
            << dtype << ", sequence " << i;
      }
    }
  }
}

TEST_F(HuggingFaceTest, WithADenseModuleCountsNoRowThatItsMaskHides) {
  WriteDenseModule();
  const auto model = Load(folder_);
  const Item alone = Tokens(4, 20);
  const auto* ids = alone.inputs.at("x").data<int64_t>();
  Item padded;
  padded.inputs["x"] = Tensor::FromInts({6}, {ids[0], ids[1], ids[2], ids[3], 7, 7});
  padded.inputs["attention_mask"] = MaskOf(6, 0, 4);
  const std::vector<TensorMap> results = Compute(*model, {padded, padded});
  EXPECT_LT(LargestDifference(results[1], Compute(*model, {alone})[0]), 1e-6);
}

TEST_F(HuggingFaceTest, WithDenseModulesThatDoNotFitIsRefused) {
  WriteDenseModule();
  json config = {{"in_features", 9}, {"out_features", 5}};
  WriteModule("2_Dense", config);
  EXPECT_THAT(Error(), HasSubstr("in_features is 9, but what comes before it gives 8"));
  WriteModule("2_Dense", {{"in_features", 8}, {"out_features", 6}});
  EXPECT_THAT(Error(), HasSubstr("2_Dense.linear.weight is [5, 8], expected [6, 8]"));
  WriteModule("2_Dense", {{"in_features", 8}, {"out_features", 5}, {"use_residual", true}});
  EXPECT_THAT(Error(), HasSubstr("\"use_residual\" is true, expected false"));
  config = {{"in_features", 8}, {"out_features", 5}, {"activation_function", "my.Own"}};
  WriteModule("2_Dense", config);
  EXPECT_THAT(Error(), HasSubstr("\"activation_function\" is \"my.Own\", expected one of"));
  std::filesystem::remove(folder_ + "/2_Dense/model.safetensors");
  WriteModule("2_Dense", {{"in_features", 8}, {"out_features", 5}});
  EXPECT_THAT(Error(), HasSubstr("there is no model.safetensors in " + folder_ + "/2_Dense"));
  WriteModules({"Transformer", "Dense", "Pooling"});
  EXPECT_THAT(Error(), HasSubstr("a module of type 'Dense' is not computed there"));
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

TEST_F(HuggingFaceTest, WithScaledPositionsIsRefused) {
  for (const char* type : {"gte", "modernbert", "nomic_bert"}) {
    WriteConfig({{"model_type", type}, {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}});
    EXPECT_THAT(Error(), HasSubstr("\"type\" is \"linear\", expected one of default")) << type;
    WriteConfig({{"model_type", type}, {"rope_scaling", {{"rope_type", "default"}}}});
    EXPECT_THAT(Error(), Not(HasSubstr("rope"))) << type;
  }
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

}  // namespace
}  // namespace linserve
