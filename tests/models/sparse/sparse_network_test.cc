// Sparse encoders: an encoder and a masked language model's head, whose logits are folded into one
// vector. The golden cases hold their numbers against sentence-transformers.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"
#include "models/sparse/vocabulary_fold.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// More than the words that a thread takes at once.
constexpr int64_t kSparseWords = 1100;

struct SparseKind {
  std::string architecture;
  json params = json::object();
};

json SparseSizes(const std::string& architecture) {
  if (architecture.find("DistilBert") != std::string::npos) {
    return {{"vocab_size", kSparseWords},
            {"dim", 16},
            {"n_layers", 2},
            {"n_heads", 2},
            {"hidden_dim", 24},
            {"max_position_embeddings", 302}};
  }
  return {{"vocab_size", kSparseWords}, {"hidden_size", 16},
          {"num_hidden_layers", 2},     {"num_attention_heads", 2},
          {"intermediate_size", 24},    {"max_position_embeddings", 302}};
}

std::vector<SparseKind> SparseKinds() {
  std::vector<SparseKind> kinds = {
      {"transformers.BertForMaskedLM"},
      {"transformers.BertForMaskedLM",
       {{"pooling_strategy", "sum"}, {"tie_word_embeddings", false}}},
      {"transformers.RobertaForMaskedLM", {{"activation_function", "log1p_relu"}}},
      {"transformers.XLMRobertaForMaskedLM"},
      {"transformers.DistilBertForMaskedLM", {{"pooling_strategy", "sum"}}},
      {"transformers.ModernBertForMaskedLM", {{"decoder_bias", false}, {"norm_bias", true}}}};
  for (SparseKind& kind : kinds) kind.params.update(SparseSizes(kind.architecture));
  return kinds;
}

class SparseNetworkTest : public DeviceModelTest {
 protected:
  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kSparseWords);
    item.options.outputs = {"sparse_embedding"};
    if (masked) {
      const int64_t there = Any(0, length - 1);
      item.inputs["attention_mask"] = MaskOf(length, there, Any(there + 1, length));
    }
    return item;
  }
};

TEST_F(SparseNetworkTest, GivesASequenceWhatItGivesItAlone) {
  for (const SparseKind& kind : SparseKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const auto model = Make(kind.architecture, kind.params.dump());
    ExpectTheSameInMixes(*model, 6,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

// Rows are gathered by 256, and multiplied by 128.
TEST_F(SparseNetworkTest, GivesLongSequencesWhatItGivesThemAlone) {
  const SparseKind kind = SparseKinds()[0];
  const auto model = Make(kind.architecture, kind.params.dump());
  for (const bool masked : {false, true}) {
    std::vector<Item> items;
    for (const int64_t length : {300, 1, 127, 128, 129, 256, 2, 257}) {
      items.push_back(Sequence(length, masked));
    }
    const auto together = Compute(*model, items);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_LE(LargestDifference(together[i], Compute(*model, {items[i]})[0]), 1e-5) << i;
    }
  }
}

TEST_F(SparseNetworkTest, GivesOnADeviceWhatItGivesOnTheCpu) {
  for (const SparseKind& kind : SparseKinds()) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(kind.architecture, kind.params.dump(),
                            [&](int64_t length) { return Sequence(length, masked); });
    }
  }
}

TEST_F(SparseNetworkTest, IsCloseToFloat32InAllTypes) {
  for (const SparseKind& kind : SparseKinds()) {
    SCOPED_TRACE(kind.architecture + kind.params.dump());
    const std::string directory = Directory(kind.architecture, kind.params.dump());
    const auto exact = Load(directory);
    for (const std::string& type : TypesOfCpu()) {
      const auto rounded = Load(directory, {.dtype = type});
      const Item item = Sequence(40, false);
      EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("sparse_embedding"),
                               Compute(*rounded, {item})[0].at("sparse_embedding")),
                type == "int8" ? 0.99 : 0.999)
          << type;
    }
  }
}

TEST_F(SparseNetworkTest, HiddenRowsTakeNoPart) {
  for (const char* strategy : {"max", "sum"}) {
    json params = SparseSizes("");
    params["pooling_strategy"] = strategy;
    const auto model = Make("transformers.BertForMaskedLM", params.dump());
    Item whole = Sequence(200, false);
    const auto* ids = whole.inputs.at("x").data<int64_t>();
    Item first = whole;
    first.inputs["x"] = Tensor::FromInts({150}, {ids, ids + 150});
    whole.inputs["attention_mask"] = MaskOf(200, 0, 150);
    const auto vectors = Compute(*model, {whole});
    // Sums of 150 rows are as much larger, and so is what is rounded.
    const double tolerance = std::string(strategy) == "sum" ? 1e-4 : 1e-5;
    EXPECT_LE(LargestDifference(vectors[0], Compute(*model, {first})[0]), tolerance);
  }
}

TEST_F(SparseNetworkTest, IsNoLessThanZeroAndHasTheSizeOfTheVocabulary) {
  const auto model = Make("transformers.BertForMaskedLM", SparseSizes("").dump());
  const Tensor vector = Compute(*model, {Sequence(1, false)})[0].at("sparse_embedding");
  ASSERT_EQ(vector.shape(), Shape{kSparseWords});
  int64_t zeros = 0;
  for (int64_t i = 0; i < kSparseWords; ++i) {
    EXPECT_GE(vector.data<float>()[i], 0);
    if (vector.data<float>()[i] == 0) ++zeros;
  }
  EXPECT_GT(zeros, kSparseWords / 4);
  EXPECT_LT(zeros, 3 * kSparseWords / 4);
}

TEST_F(SparseNetworkTest, GivesTheEncodersRowsToo) {
  const auto model = Make("transformers.BertForMaskedLM", SparseSizes("").dump());
  const Signature& signature = model->info().signature;
  ASSERT_EQ(signature.outputs.size(), 2U);
  EXPECT_EQ(signature.outputs[0].name, "sparse_embedding");
  EXPECT_EQ(signature.outputs[1].name, "last_hidden_state");
  Item item = Sequence(9, false);
  item.options.outputs = {"last_hidden_state"};
  EXPECT_EQ(Compute(*model, {item})[0].at("last_hidden_state").shape(), (Shape{9, 16}));
}

// Between steps callers who have left are noticed, and the memory plan counts what is kept twice.
TEST_F(SparseNetworkTest, TellsOfTheStepsAndTheMemoryOfItsHead) {
  json params = SparseSizes("");
  const ModelInfo tied = Make("transformers.BertForMaskedLM", params.dump())->info();
  params["tie_word_embeddings"] = false;
  const ModelInfo own = Make("transformers.BertForMaskedLM", params.dump())->info();
  const int64_t depth = params["num_hidden_layers"];
  EXPECT_GE(tied.layers, 2 * depth);
  EXPECT_EQ(tied.bytes, own.bytes);
}

TEST_F(SparseNetworkTest, NeedsARowThatIsThere) {
  const auto model = Make("transformers.BertForMaskedLM", SparseSizes("").dump());
  Item item = Sequence(9, false);
  item.inputs["attention_mask"] = MaskOf(9, 0, 0);
  EXPECT_THAT(std::string(Validate(model->info().signature, item).message()),
              HasSubstr("it leaves no row of output 'sparse_embedding' to pool"));
}

TEST_F(SparseNetworkTest, RefusesWhatIsNotComputedByName) {
  const auto error = [](const std::string& family, json params) {
    params.update(SparseSizes(family));
    return InitError("transformers." + family + "ForMaskedLM", params.dump());
  };
  EXPECT_THAT(error("Bert", {{"pooling_strategy", "mean"}}),
              HasSubstr("\"pooling_strategy\" is \"mean\", expected one of max, sum"));
  EXPECT_THAT(error("Bert", {{"activation_function", "gelu"}}),
              HasSubstr("\"activation_function\" is \"gelu\", expected one of relu, log1p_relu"));
  EXPECT_THAT(error("Bert", {{"tie_word_embeddings", "no"}}),
              HasSubstr("\"tie_word_embeddings\" is \"no\", expected true or false"));
  EXPECT_THAT(error("Bert", {{"is_decoder", true}}), HasSubstr("\"is_decoder\""));
  EXPECT_THAT(error("Bert", {{"decoder_bias", false}}),
              HasSubstr("unknown parameter \"decoder_bias\""));
  EXPECT_THAT(error("ModernBert", {{"decoder_bias", 1}}),
              HasSubstr("\"decoder_bias\" is 1, expected true or false"));
}

TEST(VocabularyFolds, KeepWhatIsNotANumber) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const bool sum : {false, true}) {
    const VocabularyFold fold{.sum = sum, .twice = false};
    std::vector<float> logits = {1, kNan, -1, 2, 3, -4};
    std::vector<float> weights(3);
    fold.Add(RowBlock{logits.data(), 3}, 2, 3, weights.data());
    EXPECT_TRUE(std::isnan(weights[1])) << sum;
    EXPECT_FLOAT_EQ(weights[0], sum ? std::log(2.0F) + std::log(3.0F) : 2.0F);
    EXPECT_FLOAT_EQ(weights[2], 0.0F);
  }
}

}  // namespace
}  // namespace linserve
