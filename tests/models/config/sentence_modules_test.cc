// What sentence-transformers computes behind an encoder, as the files of its modules say.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "attention/rows/aten.h"
#include "core/files/safetensors.h"
#include "models/config/hugging_face_fixture.h"
#include "models/placement/tensor_bridge.h"
#include "models/simulated.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SentenceModulesTest : public HuggingFaceFixture {
 protected:
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

  const Tensor weight_ = RandomFloats({5, 8});
  const Tensor bias_ = RandomFloats({5});
};

TEST_F(SentenceModulesTest, IsPooledByTheMeanUnlessItsModulesSayOtherwise) {
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

TEST_F(SentenceModulesTest, WithAModuleOrAPoolingThatIsNotComputedIsRefusedByName) {
  WriteModules({"Transformer", "Pooling"});
  WriteModule("1_Pooling", {{"pooling_mode_cls_token", true}, {"pooling_mode_max_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("1_Pooling/config.json pools by cls and max"));
  WriteModule("1_Pooling", {{"pooling_mode_mean_sqrt_len_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("pools by mean_sqrt_len_tokens, expected one of cls"));
  WriteModule("1_Pooling", {{"pooling_mode_weightedmean_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("pools by weightedmean, expected one of cls"));
  WriteModule("1_Pooling", {{"pooling_mode", {"mean", "own"}}});
  EXPECT_THAT(Error(), HasSubstr("pools by nothing that is known"));
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

TEST_F(SentenceModulesTest, WithModulesThatCannotBeReadIsRefused) {
  WriteModules({"Transformer", "Pooling"});
  EXPECT_THAT(Error(), StartsWith(folder_ + "/1_Pooling/config.json is not there"));
  WriteModule("1_Pooling", json::array());
  EXPECT_THAT(Error(), StartsWith(folder_ + "/1_Pooling/config.json: expected an object of JSON"));
  Write(folder_ + "/1_Pooling", "config.json", "{");
  EXPECT_THAT(Error(), StartsWith(folder_ + "/1_Pooling/config.json: "));
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

TEST_F(SentenceModulesTest, WithDenseModulesGivesTheVectorThatTheyMakeOfThePooledRows) {
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

TEST_F(SentenceModulesTest, ThatLeaveOutPromptsPoolTheRowsOfAMask) {
  WriteModules({"Transformer", "Pooling"});
  WriteModule("1_Pooling", {{"include_prompt", false}});
  // Nothing is left out where there are no prompts.
  EXPECT_EQ(Load(folder_)->info().signature.FindInput("pooling_mask"), nullptr);
  Write(folder_, "config_sentence_transformers.json", R"({"prompts": {"query": "query: "}})");
  const auto model = Load(folder_);
  Item item = item_;
  item.options.outputs = {"sentence_embedding", "last_hidden_state"};
  const int64_t length = item.inputs.at("x").elements();
  at::Tensor pooled = at::ones({length}, at::kBool);
  for (const int64_t prompt : {0, 2}) {
    pooled.narrow(0, 0, prompt).zero_();
    if (prompt > 0) item.inputs["pooling_mask"] = FromAten(pooled);
    const TensorMap results = Compute(*model, {item})[0];
    const at::Tensor expected =
        ToAten(results.at("last_hidden_state")).narrow(0, prompt, length - prompt).mean(0);
    const at::Tensor difference = ToAten(results.at("sentence_embedding")) - expected;
    EXPECT_LT(difference.abs().max().item<float>(), 1e-6);
  }
}

TEST_F(SentenceModulesTest, WithDenseModulesTakeThePoolingOfServing) {
  WriteDenseModule("mean_tokens");
  const auto pooling = [this] { return ReadModelDirectory(folder_)->network.sentence.pooling; };
  EXPECT_EQ(pooling(), Pooling::kMean);
  WriteConfig({{"serving", {{"pooling", "cls"}}}});
  EXPECT_EQ(pooling(), Pooling::kCls);
  WriteConfig({{"serving", {{"pooling", "none"}}}});
  EXPECT_EQ(pooling(), Pooling::kMean);
}

TEST_F(SentenceModulesTest, WithADenseModuleTakesActivationsByTheirClass) {
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

TEST_F(SentenceModulesTest, WithADenseModuleAddWhatItTookIfThatIsAskedFor) {
  WriteDenseModule();
  WriteModules({"Transformer", "Pooling", "Dense"});
  Item item = item_;
  item.options.outputs = {"sentence_embedding", "last_hidden_state"};
  for (const int64_t outputs : {5, 8}) {
    SCOPED_TRACE(outputs);
    const Tensor weight = RandomFloats({outputs, 8});
    const Tensor residual = RandomFloats({outputs, 8});
    TensorMap tensors = {{"linear.weight", weight}};
    if (outputs != 8) tensors["residual.weight"] = residual;
    ASSERT_TRUE(WriteSafetensors(folder_ + "/2_Dense/model.safetensors", tensors).ok());
    WriteModule(
        "2_Dense",
        {{"in_features", 8}, {"out_features", outputs}, {"bias", false}, {"use_residual", true}});
    const TensorMap results = Compute(*Load(folder_), {item})[0];
    const at::Tensor mean = ToAten(results.at("last_hidden_state")).mean(0);
    const at::Tensor added = outputs == 8 ? mean : at::linear(mean, ToAten(residual));
    const at::Tensor expected = at::tanh(at::linear(mean, ToAten(weight))) + added;
    EXPECT_LT((ToAten(results.at("sentence_embedding")) - expected).abs().max().item<float>(),
              1e-6);
  }
}

TEST_F(SentenceModulesTest, WithADenseModuleAsksADeviceOnceForAllSequences) {
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

TEST_F(SentenceModulesTest, WithADenseModuleCountsNoRowThatItsMaskHides) {
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

TEST_F(SentenceModulesTest, WithDenseModulesThatDoNotFitIsRefused) {
  WriteDenseModule();
  json config = {{"in_features", 9}, {"out_features", 5}};
  WriteModule("2_Dense", config);
  EXPECT_THAT(Error(), HasSubstr("in_features is 9, but what comes before it gives 8"));
  WriteModule("2_Dense", {{"in_features", 8}, {"out_features", 6}});
  EXPECT_THAT(Error(), HasSubstr("2_Dense.linear.weight is [5, 8], expected [6, 8]"));
  WriteModule("2_Dense", {{"in_features", 8}, {"out_features", 5}, {"use_residual", true}});
  EXPECT_THAT(Error(), HasSubstr("2_Dense.residual.weight [5, 8]"));
  config = {{"in_features", 8}, {"out_features", 5}, {"activation_function", "my.Own"}};
  WriteModule("2_Dense", config);
  EXPECT_THAT(Error(), HasSubstr("\"activation_function\" is \"my.Own\", expected one of"));
  std::filesystem::remove(folder_ + "/2_Dense/model.safetensors");
  WriteModule("2_Dense", {{"in_features", 8}, {"out_features", 5}});
  EXPECT_THAT(Error(), HasSubstr("there is no model.safetensors in " + folder_ + "/2_Dense"));
  WriteModules({"Transformer", "Dense", "Pooling"});
  EXPECT_THAT(Error(), HasSubstr("a module of type 'Dense' is not computed there"));
}

}  // namespace
}  // namespace linserve
