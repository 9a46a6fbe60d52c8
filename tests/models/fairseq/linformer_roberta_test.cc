// The Linformer paper's own model, by fairseq's arguments and checkpoints.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/files/safetensors.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kLinformerRoberta = "fairseq.LinformerRoberta";
constexpr int64_t kVocabulary = 30;

std::string ParamsWith(const json& changed) {
  json params = json::parse(R"({
    "vocab_size": 30, "encoder_layers": 2, "encoder_embed_dim": 16, "encoder_attention_heads": 2,
    "encoder_ffn_embed_dim": 16, "max_positions": 40})");
  params.update(changed);
  return params.dump();
}

class LinformerRobertaTest : public ModelFixture {
 protected:
  Item Of(int64_t length) {
    Item item = Tokens(length, kVocabulary);
    item.options.outputs = {"embeddings", "y"};
    return item;
  }

  // Adds tensors to a model's file.
  static void AddTensors(const std::string& directory, const TensorMap& more) {
    const std::string path = directory + "/model.safetensors";
    TensorMap tensors = ReadSafetensors(path)->tensors;
    tensors.insert(more.begin(), more.end());
    ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  }
};

TEST_F(LinformerRobertaTest, GivesTheSameRowsInEveryMode) {
  for (const json& changed :
       {json::object(), json{{"shared_layer_kv_compressed", 1}},
        json{{"shared_kv_compressed", 1}, {"encoder_normalize_before", true}, {"compressed", 1}}}) {
    SCOPED_TRACE(changed.dump());
    auto model = Make(kLinformerRoberta, ParamsWith(changed));
    ExpectTheSameInMixes(*model, 12, [&](int64_t length, bool) { return Of(length); });
  }
}

TEST_F(LinformerRobertaTest, ComputesLongSequencesAsTheirSlices) {
  auto model = Make(kLinformerRoberta, ParamsWith({{"max_positions", 700}, {"compressed", 7}}));
  ExpectTheSameAloneAndTogether(*model, {Of(700), Of(3), Of(129), Of(128), Of(500)});
}

TEST_F(LinformerRobertaTest, DoesWithoutWhatElseTheCheckpointHolds) {
  const std::string directory = Directory(kLinformerRoberta, ParamsWith(json::object()));
  const Item item = Of(9);
  const TensorMap expected = Compute(*Load(directory), {item})[0];
  AddTensors(directory, {{"encoder.version", Tensor::FromInts({}, {2})},
                         {"encoder.sentence_encoder.version", RandomFloats({1})},
                         {"encoder.sentence_encoder.layers.1.version", Tensor::FromInts({}, {2})},
                         {"classification_heads.sst.dense.weight", RandomFloats({16, 16})}});
  EXPECT_EQ(LargestDifference(Compute(*Load(directory), {item})[0], expected), 0);
  AddTensors(directory, {{"encoder.sentence_encoder.layers.1.compress.weight", RandomFloats({1})}});
  EXPECT_THAT(std::string(LoadModel(directory, {}).status().message()),
              HasSubstr("in the file but not in the model (1):\n    encoder.sentence_encoder.layers"
                        ".1.compress.weight"));
}

TEST_F(LinformerRobertaTest, SharesOneMatrixByAllOfItsNames) {
  const std::string directory =
      Directory(kLinformerRoberta, ParamsWith({{"shared_layer_kv_compressed", 1}}));
  const Item item = Of(9);
  const TensorMap expected = Compute(*Load(directory), {item})[0];
  const std::string shared = "encoder.sentence_encoder.compress_layer.weight";
  const TensorMap tensors = ReadSafetensors(directory + "/model.safetensors")->tensors;
  AddTensors(directory, {{"encoder.sentence_encoder.layers.1.self_attn.compress_v.weight",
                          tensors.at(shared)}});
  EXPECT_EQ(LargestDifference(Compute(*Load(directory), {item})[0], expected), 0);
  AddTensors(directory, {{"encoder.sentence_encoder.layers.0.self_attn.compress_k.weight",
                          RandomFloats({10, 40})}});
  EXPECT_THAT(std::string(LoadModel(directory, {}).status().message()),
              HasSubstr("differs from " + shared));
}

TEST_F(LinformerRobertaTest, TakesAllArgumentsOfATraining) {
  EXPECT_THAT(InitError(kLinformerRoberta, ParamsWith({{"compresed", 4}})),
              HasSubstr("unknown parameter \"compresed\""));
  Make(kLinformerRoberta, ParamsWith({{"_name", "linformer_roberta"}, {"optimizer", "adam"}}));
  Make(kLinformerRoberta, ParamsWith({{"task", "masked_lm"}, {"lr", {0.1}}, {"seed", 1}}));
}

TEST_F(LinformerRobertaTest, HasTheSizesOfItsArchitectureWhereNoneAreGiven) {
  const auto shapes = [&](const json& params) {
    return ReadSafetensors(Init(kLinformerRoberta, params.dump()) + "/model.safetensors")->tensors;
  };
  json params = {{"vocab_size", 5}, {"encoder_layers", 1}, {"encoder_embed_dim", 32}};
  const std::string inner = "encoder.sentence_encoder.layers.0.fc1.weight";
  params["encoder_attention_heads"] = 4;
  EXPECT_EQ(shapes(params).at(inner).shape(), Shape({3072, 32}));
  params["arch"] = "linformer_roberta_base";
  EXPECT_EQ(shapes(params).at(inner).shape(), Shape({3072, 32}));
  params["arch"] = "linformer_roberta_large";
  EXPECT_EQ(shapes(params).at(inner).shape(), Shape({4096, 32}));
  params.erase("encoder_attention_heads");
  params.erase("encoder_embed_dim");
  EXPECT_EQ(shapes(params).at(inner).shape(), Shape({4096, 1024}));
  params["encoder_embed_dim"] = 36;
  EXPECT_THAT(InitError(kLinformerRoberta, params.dump()),
              HasSubstr("a multiple of encoder_attention_heads = 16"));
  params.erase("arch");
  params["_name"] = "linformer_roberta_large";
  params["encoder_embed_dim"] = 32;
  EXPECT_EQ(shapes(params).at(inner).shape(), Shape({4096, 32}));
  params.erase("encoder_layers");
  EXPECT_EQ(shapes(params).count("encoder.sentence_encoder.layers.23.fc1.weight"), 1);
}

TEST_F(LinformerRobertaTest, RefusesWhatFairseqCouldNotBuild) {
  const auto error = [&](const json& changed) {
    return InitError(kLinformerRoberta, ParamsWith(changed));
  };
  EXPECT_THAT(error({{"compressed", 41}}), HasSubstr("at most max_positions = 40"));
  EXPECT_THAT(error({{"padding_idx", 30}}), HasSubstr("less than vocab_size = 30"));
  EXPECT_THAT(error({{"encoder_attention_heads", 3}}), HasSubstr("encoder_attention_heads = 3"));
  EXPECT_THAT(error({{"shared_kv_compressed", 2}}), HasSubstr("expected 0 or 1"));
  EXPECT_THAT(error({{"encoder_layers_to_keep", "0,1,2"}}), HasSubstr("some of encoder_layers"));
  for (const char* kept : {"0,x", "0,", ",0", "0 1", "0,-1", "1,1", "9999999999999999999"}) {
    EXPECT_THAT(error({{"encoder_layers_to_keep", kept}}), HasSubstr("layers' numbers by commas"))
        << kept;
  }
  for (const char* key : {"arch", "_name"}) {
    EXPECT_THAT(InitError(kLinformerRoberta, json({{"vocab_size", 5}, {key, "roberta"}}).dump()),
                HasSubstr("linformer_roberta_large"));
    EXPECT_EQ(error({{key, "of_my_own_with_all_sizes"}}), "");
  }
  EXPECT_THAT(error({{"encoder_learned_pos", false}, {"encoder_embed_dim", 2}}),
              HasSubstr("for sines and cosines"));
}

}  // namespace
}  // namespace linserve
