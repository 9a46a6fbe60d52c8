// What folders of static models say of their texts, as sentence-transformers and model2vec read
// them.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/rows/aten.h"
#include "core/files/safetensors.h"
#include "models/config/hugging_face_config.h"
#include "models/config/hugging_face_fixture.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kStaticModule =
    R"({"type": "sentence_transformers.models.StaticEmbedding", "path": ")";
constexpr const char* kNormalizeModule =
    R"(, {"type": "sentence_transformers.models.Normalize", "path": "1_Normalize"})";

class StaticFolderTest : public HuggingFaceFixture {
 protected:
  StaticFolderTest() {
    std::filesystem::remove(folder_ + "/config.json");
    WriteTable("", {{"embedding.weight", table_}});
    WriteList("");
  }

  void WriteList(const std::string& path, const std::string& more = "") {
    Write(folder_, "modules.json", "[" + (kStaticModule + path) + "\"}" + more + "]");
  }

  void WriteTable(const std::string& path, const TensorMap& tensors) {
    std::filesystem::create_directories(folder_ + "/" + path);
    ASSERT_TRUE(WriteSafetensors(folder_ + "/" + path + "/model.safetensors", tensors).ok());
  }

  // Makes it a folder of model2vec.
  void WriteModel2Vec(json config, const TensorMap& tensors) {
    config["model_type"] = "model2vec";
    Write(folder_, "config.json", config.dump());
    WriteList(".", config.value("normalize", false) ? kNormalizeModule : "");
    WriteTable("", tensors);
  }

  ModelConfig Read() const { return *ReadModelDirectory(folder_); }

  // Expects the mean of rows 3, 3 and 17 of a table.
  void ExpectMean(const Tensor& of) {
    Item item;
    item.inputs["x"] = Tensor::FromInts({3}, {3, 3, 17});
    const at::Tensor table = ToAten(of).to(at::kFloat);
    const at::Tensor expected = (table[3] * 2 + table[17]) / 3;
    const TensorMap results = Compute(*Load(folder_), {item})[0];
    EXPECT_LT((ToAten(results.at("sentence_embedding")) - expected).abs().max().item<float>(),
              1e-6);
  }

  const Tensor table_ = RandomFloats({20, 6});
};

TEST_F(StaticFolderTest, NeedsNoConfig) {
  ExpectMean(table_);
  const ModelConfig config = Read();
  EXPECT_EQ(config.network.architecture, "sentence_transformers.StaticEmbedding");
  EXPECT_FALSE(config.static_settings->as_model2vec);
  EXPECT_FALSE(config.serving.contains("max_text_tokens"));
  EXPECT_FALSE(config.serving.contains("normalize"));
  WriteList("", kNormalizeModule);
  EXPECT_EQ(Serving()["normalize"], true);
}

TEST_F(StaticFolderTest, MayHaveItsFilesInAFolder) {
  std::filesystem::remove(folder_ + "/model.safetensors");
  WriteList("0_StaticEmbedding");
  EXPECT_THAT(Error(), HasSubstr("there is no model.safetensors in " + folder_ + "/0_Static"));
  WriteTable("0_StaticEmbedding", {{"embedding.weight", table_}});
  ExpectMean(table_);
  EXPECT_EQ(Read().static_settings->tokenizer, "0_StaticEmbedding");
  WriteList("../elsewhere");
  EXPECT_THAT(Error(), HasSubstr("the path '../elsewhere' is not that of a folder"));
}

TEST_F(StaticFolderTest, IsServedAsItsConfigSays) {
  Write(folder_, "config.json", R"({"serving": {"max_text_tokens": 5, "dimensions": [3]}})");
  EXPECT_EQ(Serving()["max_text_tokens"], 5);
  EXPECT_EQ(Serving()["dimensions"], json({3}));
  Write(folder_, "config_sentence_transformers.json", R"({"prompts": {"query": "q: "}})");
  EXPECT_EQ(Serving()["prompts"]["query"], "q: ");
  Write(folder_, "config.json", R"({"serving": {"texts_as": "fasttext"}})");
  EXPECT_THAT(Error(), HasSubstr(R"('texts_as' is "fasttext", expected "model2vec" or)"));
}

TEST_F(StaticFolderTest, MayHaveADenseModuleBehindIt) {
  WriteModule("2_Dense", {{"in_features", 6},
                          {"out_features", 2},
                          {"activation_function", "torch.nn.modules.activation.Tanh"}});
  WriteTable("2_Dense",
             {{"linear.weight", RandomFloats({2, 6})}, {"linear.bias", RandomFloats({2})}});
  WriteList("", R"(, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"})");
  const auto model = Load(folder_);
  const Signature& signature = model->info().signature;
  ASSERT_EQ(signature.outputs.size(), 2U);
  EXPECT_EQ(signature.outputs[0].axes, std::vector<Axis>{Axis::Fixed(2)});
  Item item = Tokens(4, 20);
  item.inputs["attention_mask"] = MaskOf(4, 0, 0);
  const at::Tensor vector = ToAten(Compute(*model, {item})[0].at("sentence_embedding"));
  EXPECT_GT(vector.abs().max().item<float>(), 0);  // what is made of the bias alone
}

TEST_F(StaticFolderTest, OfModel2VecIsReadAsThatPackageDoes) {
  WriteModel2Vec({{"normalize", true}, {"seq_length", 1000000}}, {{"embeddings", table_}});
  ExpectMean(table_);
  EXPECT_TRUE(Read().static_settings->as_model2vec);
  EXPECT_EQ(Serving()["normalize"], true);
  EXPECT_EQ(Serving()["max_text_tokens"], 512);
  WriteModel2Vec({{"max_length", 30}}, {{"embeddings", table_}});
  EXPECT_FALSE(Serving().contains("normalize"));
  EXPECT_EQ(Serving()["max_text_tokens"], 30);
  EXPECT_EQ(Read().text_limit_origin, "max_length in config.json");
  WriteModel2Vec({{"max_length", nullptr}}, {{"embeddings", table_}});
  EXPECT_FALSE(Serving().contains("max_text_tokens"));
  std::filesystem::remove(folder_ + "/modules.json");
  ExpectMean(table_);
}

TEST_F(StaticFolderTest, OfModel2VecMayBeReadAsSentenceTransformersDoes) {
  const json serving = {{"texts_as", "sentence-transformers"}};
  WriteModel2Vec({{"normalize", true}, {"serving", serving}}, {{"embeddings", table_}});
  EXPECT_FALSE(Read().static_settings->as_model2vec);
  EXPECT_FALSE(Serving().contains("max_text_tokens"));
  EXPECT_FALSE(Serving().contains("texts_as"));
  EXPECT_EQ(Serving()["normalize"], true);
  std::filesystem::remove(folder_ + "/modules.json");
  EXPECT_THAT(Error(), HasSubstr("modules.json does not begin with a StaticEmbedding"));
}

TEST_F(StaticFolderTest, MayHaveATableOfIntegersWithRowsThatTokensShare) {
  std::vector<int64_t> numbers;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 30; ++i) numbers.push_back(Any(-127, 127));
  for (int64_t i = 0; i < 20; ++i) rows.push_back(i % 5);
  const Tensor table = Tensor::FromInts({5, 6}, numbers);
  WriteModel2Vec({}, {{"embeddings", table}, {"mapping", Tensor::FromInts({20}, rows)}});
  EXPECT_EQ(Read().network.params["vocabulary_quantization"], 5);
  const at::Tensor all =
      ToAten(table).to(at::kFloat).index_select(0, ToAten(Tensor::FromInts({20}, rows)));
  ExpectMean(FromAten(all));
  rows[7] = 5;
  WriteModel2Vec({}, {{"embeddings", table}, {"mapping", Tensor::FromInts({20}, rows)}});
  EXPECT_THAT(Error(), HasSubstr("mapping holds what is the number of none of the 5 rows"));
  WriteModel2Vec({}, {{"embeddings", table}, {"mapping", RandomFloats({20})}});
  EXPECT_THAT(Error(), HasSubstr("mapping holds what is the number of none of the 5 rows"));
}

TEST_F(StaticFolderTest, RefusesByNameWhatIsNotComputed) {
  const std::string pooling = R"(, {"type": "sentence_transformers.models.Pooling", "path": "1"})";
  WriteList("", pooling);
  EXPECT_THAT(Error(), HasSubstr("a module of type 'Pooling' is not computed there"));
  WriteList("");
  WriteTable("", {{"weight", table_}});
  EXPECT_THAT(Error(), HasSubstr("has no table of a static model: neither embedding.weight"));
  WriteTable("", {{"embedding.weight", RandomFloats({20})}});
  EXPECT_THAT(Error(), HasSubstr("the tensor embedding.weight is [20], expected [tokens, width]"));
  WriteModel2Vec({{"max_length", 0}}, {{"embeddings", table_}});
  EXPECT_THAT(Error(), HasSubstr("\"max_length\" is 0"));
  WriteModel2Vec({}, {{"embeddings", table_}});
  WriteList("", R"(, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"})");
  WriteModule("2_Dense", {{"in_features", 6}, {"out_features", 2}});
  EXPECT_THAT(Error(), HasSubstr("a Dense module, which model2vec does not compute"));
  std::filesystem::remove(folder_ + "/config.json");
  Write(folder_, "modules.json", R"([{"type": "sentence_transformers.models.Transformer"}])");
  EXPECT_THAT(Error(), HasSubstr("config.json is not there: download the whole folder"));
  Write(folder_, "modules.json", R"([{"type": "sentence_transformers.models.Router"}])");
  EXPECT_THAT(Error(), HasSubstr("a module of type 'Router' is not computed there"));
}

}  // namespace
}  // namespace linserve
