// Static models: vectors that are means of a table's rows. The golden cases and the tests with the
// packages hold their numbers against those.
#include "models/static/static_model.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/rows/aten.h"
#include "core/files/safetensors.h"
#include "models/forward/device_fixture.h"
#include "models/placement/tensor_bridge.h"
#include "models/random_weights.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kStaticTokens = 90;

struct StaticKind {
  std::string architecture;
  std::string params;
};

std::vector<StaticKind> StaticKinds() {
  return {
      {"sentence_transformers.StaticEmbedding", R"({"num_embeddings": 90, "embedding_dim": 37})"},
      {"model2vec.StaticModel", R"({"vocab_size": 90, "hidden_dim": 20})"},
      {"model2vec.StaticModel",
       R"({"vocab_size": 90, "hidden_dim": 20, "weighted": true, "vocabulary_quantization": 30})"}};
}

class StaticModelTest : public DeviceModelTest {
 protected:
  // Makes a model whose tokens, where they share rows, have some of each.
  std::string DirectoryOf(const StaticKind& kind) {
    std::string directory = Directory(kind.architecture, kind.params);
    TensorMap weights = ReadWeights(directory);
    const auto mapping = weights.find("mapping");
    if (mapping == weights.end()) return directory;
    std::vector<float> rows(kStaticTokens);
    for (float& row : rows) row = static_cast<float>(Any(0, 29));
    mapping->second = Tensor::FromFloats({kStaticTokens}, rows);
    WriteWeights(directory, weights);
    return directory;
  }

  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kStaticTokens);
    if (masked) item.inputs["attention_mask"] = RandomMask(length, 0.6);
    return item;
  }

  static at::Tensor VectorOf(Model& model, const Item& item) {
    return ToAten(Compute(model, {item})[0].at("sentence_embedding")).clone();
  }
};

TEST_F(StaticModelTest, GivesASequenceWhatItGivesItAlone) {
  for (const StaticKind& kind : StaticKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params);
    const auto model = Load(DirectoryOf(kind));
    ExpectTheSameInMixes(*model, 6,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(StaticModelTest, GivesOnADeviceWhatItGivesOnTheCpu) {
  for (const StaticKind& kind : StaticKinds()) {
    const std::string directory = DirectoryOf(kind);
    std::vector<Item> items;
    for (const int64_t length : {7, 1, 12, 12, 3}) items.push_back(Sequence(length, false));
    const auto expected = Compute(*Load(directory), items);
    for (const char* dtype : {"f32", "bf16"}) {
      const auto computed = Compute(*LoadOn("simulated:0", directory, dtype), items);
      for (size_t i = 0; i < items.size(); ++i) {
        const at::Tensor wanted = ToAten(expected[i].at("sentence_embedding"));
        const at::Tensor vector = ToAten(computed[i].at("sentence_embedding")).to(at::kFloat);
        EXPECT_LT((vector - wanted).norm().item<float>() / wanted.norm().item<float>(),
                  std::string(dtype) == "f32" ? 1e-6 : 1e-2);
      }
    }
  }
}

TEST_F(StaticModelTest, GivesTheMeanOfRowsThatAreThere) {
  for (const StaticKind& kind : StaticKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params);
    const auto model = Load(DirectoryOf(kind));
    for (const int64_t length : {1, 7, 64, 65, 300}) {
      Item item = Sequence(length, true);
      const at::Tensor there = ToAten(item.inputs.at("attention_mask"));
      const at::Tensor mean = VectorOf(*model, item);
      item.options.outputs = {"token_embeddings"};
      const TensorMap results = Compute(*model, {item})[0];
      const at::Tensor rows = ToAten(results.at("token_embeddings"));
      ASSERT_EQ(rows.size(0), length);
      const at::Tensor expected = there.any().item<bool>() ? rows.index({there}).mean(0)
                                                           : at::zeros({rows.size(1)}, at::kFloat);
      EXPECT_LT((mean - expected).abs().max().item<float>(), 1e-6) << length;
    }
  }
}

TEST_F(StaticModelTest, GivesZerosWhereNoRowIsThere) {
  for (const std::string device : {"cpu", "simulated:0"}) {
    for (const StaticKind& kind : StaticKinds()) {
      const auto model = LoadOn(device, DirectoryOf(kind));
      Item item = Sequence(3, false);
      item.inputs["attention_mask"] = MaskOf(3, 0, 0);
      item.options.normalize = true;
      EXPECT_TRUE(Validate(model->info().signature, item).ok());
      EXPECT_EQ(VectorOf(*model, item).abs().sum().item<float>(), 0);
    }
  }
}

TEST_F(StaticModelTest, MultipliesRowsThatTokensShare) {
  const std::string directory = Directory(
      "model2vec.StaticModel",
      R"({"vocab_size": 3, "hidden_dim": 2, "weighted": true, "vocabulary_quantization": 2})");
  ASSERT_TRUE(WriteSafetensors(directory + "/model.safetensors",
                               {{"embeddings", Tensor::FromFloats({2, 2}, {1, 2, 3, 5})},
                                {"weights", Tensor::FromFloats({3}, {1, 10, 0.5})},
                                {"mapping", Tensor::FromFloats({3}, {1, 0, 1})}})
                  .ok());
  Item item;
  item.inputs["x"] = Tensor::FromInts({4}, {0, 1, 2, 2});
  for (const std::string device : {"cpu", "simulated:0"}) {
    const at::Tensor vector = VectorOf(*LoadOn(device, directory), item);
    EXPECT_FLOAT_EQ(vector[0].item<float>(), (3 + 10 + 1.5F + 1.5F) / 4);
    EXPECT_FLOAT_EQ(vector[1].item<float>(), (5 + 20 + 2.5F + 2.5F) / 4);
  }
}

TEST_F(StaticModelTest, HasATableOfBf16InRoundedTypes) {
  const StaticKind kind = StaticKinds()[0];
  const std::string directory = DirectoryOf(kind);
  const auto exact = Load(directory);
  for (const std::string& type : TypesOfCpu()) {
    const auto rounded = Load(directory, {.dtype = type});
    const Item item = Sequence(40, false);
    EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("sentence_embedding"),
                             Compute(*rounded, {item})[0].at("sentence_embedding")),
              0.999)
        << type;
    EXPECT_EQ(rounded->info().bytes * (type == "f32" ? 1 : 2), exact->info().bytes) << type;
  }
}

TEST_F(StaticModelTest, AsksADeviceForAsMuchWhateverTheBatch) {
  const StaticKind kind = StaticKinds()[2];
  const auto model = LoadOn("simulated:0", DirectoryOf(kind));
  EXPECT_EQ(LaunchesOf(*model, 40, Pooling::kMean), LaunchesOf(*model, 4, Pooling::kMean));
  const Item item = Sequence(5, false);
  ExpectNoWaiting(*model, {&item});
}

TEST_F(StaticModelTest, RefusesSizesByName) {
  EXPECT_THAT(InitError("sentence_transformers.StaticEmbedding", R"({"num_embeddings": 0})"),
              HasSubstr("\"num_embeddings\" is 0"));
  EXPECT_THAT(InitError("model2vec.StaticModel", R"({"vocab_size": 3, "hidden_dim": -2})"),
              HasSubstr("\"hidden_dim\" is -2"));
  EXPECT_THAT(InitError("model2vec.StaticModel",
                        R"({"vocab_size": 3, "hidden_dim": 2, "vocabulary_quantization": "x"})"),
              HasSubstr("\"vocabulary_quantization\" is \"x\""));
  EXPECT_THAT(InitError("sentence_transformers.StaticEmbedding",
                        R"({"num_embeddings": 3, "embedding_dim": 2, "weighted": true})"),
              HasSubstr("unknown parameter \"weighted\""));
}

}  // namespace
}  // namespace linserve
