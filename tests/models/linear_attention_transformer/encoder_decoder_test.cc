#include "models/linear_attention_transformer/fixture.h"

namespace linserve {
namespace {

constexpr const char* kLatEncoder =
    R"({"num_tokens": 30, "dim": 12, "depth": 2, "max_seq_len": 24, "heads": 3, "dim_head": 4,
        "reversible": true, "n_local_attn_heads": 2, "local_attn_window_size": 8,
        "return_embeddings": true})";
constexpr const char* kLatDecoder =
    R"({"num_tokens": 20, "dim": 12, "depth": 1, "max_seq_len": 32, "heads": 3, "dim_head": 4,
        "causal": true, "receives_context": true, "n_local_attn_heads": 1,
        "local_attn_window_size": 8, "emb_dim": 6})";

class LatEncoderDecoderTest : public ModelFixture {
 protected:
  static std::string Pair(const std::string& encoder, const std::string& decoder) {
    return R"({"encoder": )" + encoder + R"(, "decoder": )" + decoder + "}";
  }

  // Makes one of the pair, with its tensors, a model of its own.
  std::unique_ptr<Model> Half(const std::string& pair, const std::string& prefix,
                              const std::string& params) {
    TensorMap weights;
    for (const auto& [name, tensor] : ReadWeights(pair)) {
      if (name.starts_with(prefix)) weights[name.substr(prefix.size())] = tensor;
    }
    const std::string directory = Init(kLatLanguageModel, params);
    WriteWeights(directory, weights);
    return Load(directory);
  }

  Item RandomItem(bool masked) {
    const int64_t n = Any(1, 24);
    const int64_t m = Any(1, 32);
    Item item;
    item.inputs["x"] = Ids(n, kVocabulary);
    item.inputs["y"] = Tokens(m, 20).inputs.at("x");
    item.options.outputs = {"embeddings", "y"};
    if (!masked) return item;
    item.inputs["x_mask"] = RandomMask(n);
    item.inputs["y_mask"] = RandomMask(m);
    return item;
  }
};

TEST_F(LatEncoderDecoderTest, IsTheDecoderOfTheEncodersEmbeddings) {
  const std::string directory = Directory(kLatEncoderDecoder, Pair(kLatEncoder, kLatDecoder));
  const auto pair = Load(directory);
  const auto encoder = Half(directory, "encoder.", kLatEncoder);
  const auto decoder = Half(directory, "decoder.", kLatDecoder);
  for (bool masked : {false, true}) {
    const Item item = RandomItem(masked);
    Item source;
    source.inputs["x"] = item.inputs.at("x");
    Item target;
    target.inputs["x"] = item.inputs.at("y");
    target.options = item.options;
    if (masked) {
      source.inputs["input_mask"] = target.inputs["context_mask"] = item.inputs.at("x_mask");
      target.inputs["input_mask"] = item.inputs.at("y_mask");
    }
    target.inputs["context"] = Compute(*encoder, {source})[0].at("embeddings");
    EXPECT_LT(LargestDifference(Compute(*pair, {item})[0], Compute(*decoder, {target})[0]),
              kTolerance);
  }
}

TEST_F(LatEncoderDecoderTest, GivesEachPairItsOwnRowsInEveryMode) {
  const auto model = Make(kLatEncoderDecoder, Pair(kLatEncoder, kLatDecoder));
  for (int round = 0; round < 20; ++round) {
    std::vector<Item> items;
    for (int64_t i = Any(1, 5); i > 0; --i) items.push_back(RandomItem(round % 2 == 1));
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(LatEncoderDecoderTest, TakesSequencesAsLongAsEachHalfDoes) {
  const std::string decoder =
      R"({"num_tokens": 20, "dim": 12, "depth": 1, "max_seq_len": 32, "heads": 3,
          "receives_context": true, "context_linformer_settings": {"seq_len": 10, "k": 4}})";
  const auto wide = Make(kLatEncoderDecoder, Pair(kLatEncoder, kLatDecoder));
  EXPECT_EQ(LongestFor(wide->info().signature, Item(), 'n'), 24);
  EXPECT_EQ(LongestFor(wide->info().signature, Item(), 'm'), 32);
  const auto narrow = Make(kLatEncoderDecoder, Pair(kLatEncoder, decoder));
  EXPECT_EQ(LongestFor(narrow->info().signature, Item(), 'n'), 10);
}

TEST_F(LatEncoderDecoderTest, MayLeaveOutTheFlagsThatMakeThePair) {
  const char* bare = R"({"num_tokens": 20, "dim": 12, "depth": 1, "max_seq_len": 16})";
  const auto model = Make(kLatEncoderDecoder, Pair(kLatEncoder, bare));
  EXPECT_EQ(model->info().signature.FindOutput("y")->axes[1], Axis::Fixed(20));
  EXPECT_NE(Make(kLatEncoderDecoder, Pair(bare, kLatDecoder)), nullptr);
}

TEST_F(LatEncoderDecoderTest, RefusesHalvesThatDoNotFit) {
  const auto refusal = [&](const std::string& encoder, const std::string& decoder) {
    return InitError(kLatEncoderDecoder, Pair(encoder, decoder));
  };
  const std::string half = R"({"num_tokens": 20, "dim": 12, "depth": 1, "max_seq_len": 16)";
  EXPECT_NE(refusal(half + R"(, "return_embeddings": false})", kLatDecoder)
                .find("EncoderDecoder encoder: parameter \"return_embeddings\" is false, expected "
                      "true"),
            std::string::npos);
  EXPECT_NE(refusal(half + R"(, "receives_context": true})", kLatDecoder)
                .find("parameter \"receives_context\" is true, expected false"),
            std::string::npos);
  EXPECT_NE(refusal(kLatEncoder, half + R"(, "receives_context": false})")
                .find("EncoderDecoder decoder: parameter \"receives_context\" is false, expected "
                      "true"),
            std::string::npos);
  EXPECT_NE(refusal(kLatEncoder, R"({"num_tokens": 9, "dim": 16, "depth": 1, "max_seq_len": 8})")
                .find("parameter \"dim\" is 16, expected the encoder's dim = 12"),
            std::string::npos);
  EXPECT_NE(InitError(kLatEncoderDecoder, R"({"encoder": {"num_tokens": 9, "dim": 16, "depth": 1,
                                                        "max_seq_len": 8}})")
                .find("parameter \"decoder\" is missing, expected the arguments of a "
                      "LinearAttentionTransformerLM"),
            std::string::npos);
}

}  // namespace
}  // namespace linserve
