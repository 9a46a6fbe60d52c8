#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "models/forward/device_fixture.h"
#include "models/performer_pytorch/fixture.h"
#include "support/paths.h"

namespace linserve {
namespace {

using testing::HasSubstr;

class PerformerTest : public DeviceModelTest {
 protected:
  std::string StackError(const std::string& more) {
    return InitError(kPerformer, PerformerStack(more));
  }
  std::string ModelError(const std::string& more) {
    return InitError(kPerformerLanguageModel, PerformerModel(more));
  }
};

TEST_F(PerformerTest, RefusesWhatThePackageCannotBuild) {
  EXPECT_THAT(StackError(R"("heads": 5)"),
              HasSubstr("\"dim\" is 12, expected a multiple of heads"));
  EXPECT_THAT(StackError(R"("local_attn_heads": [1, 2, 3])"), HasSubstr("one for each of depth"));
  EXPECT_THAT(StackError(R"("local_attn_heads": 4)"), HasSubstr("at most heads = 3"));
  EXPECT_THAT(StackError(R"("local_attn_heads": 1, "dim_head": 5)"), HasSubstr("an even width"));
  EXPECT_THAT(StackError(R"("dim_head": 1)"), HasSubstr("nb_features"));
  EXPECT_THAT(StackError(R"("dim": 2, "heads": 1, "shift_tokens": true)"),
              HasSubstr("at least 3 with shift_tokens"));
  EXPECT_THAT(StackError(R"("kernel_fn": "sine")"), HasSubstr("relu"));
  EXPECT_THAT(InitError(kPerformer, PerformerArguments("")), HasSubstr("\"dim_head\" is missing"));
  EXPECT_THAT(ModelError(R"("dim_head": null)"), HasSubstr("a width with rotary_position_emb"));
  EXPECT_THAT(ModelError(R"("dim_head": 5)"), HasSubstr("an even width with rotary_position_emb"));
  EXPECT_THAT(ModelError(R"("axial_position_shape": [])"), HasSubstr("a list of axes"));
  EXPECT_THAT(ModelError(R"("axial_position_shape": [1048576, 1048576])"),
              HasSubstr("a list of axes"));
}

TEST_F(PerformerTest, TakesTheWidthOfHeadsAndTheirFeaturesFromOtherArguments) {
  const auto shape = [&](const std::string& architecture, const std::string& params) {
    const std::string prefix = architecture == kPerformer ? "" : "performer.";
    return ReadWeights(Init(architecture, params))
        .at(prefix + "net.layers.0.0.fn.fast_attention.projection_matrix")
        .shape();
  };
  EXPECT_EQ(shape(kPerformer, PerformerStack(R"("dim_head": null)")), Shape({5, 4}));
  EXPECT_EQ(shape(kPerformer, PerformerStack(R"("nb_features": 9)")), Shape({9, 4}));
  EXPECT_EQ(
      shape(kPerformerLanguageModel, PerformerArguments(R"("num_tokens": 9, "max_seq_len": 20)")),
      Shape({266, 64}));
}

TEST_F(PerformerTest, TakesWeightsUnderTheSecondNamesOfTheStateDict) {
  const std::string directory = Directory(kPerformer, PerformerStack(""));
  const Item item = Floats(11, 12);
  const TensorMap expected = Compute(*Load(directory), {item})[0];
  TensorMap renamed;
  for (const auto& [name, tensor] : ReadWeights(directory)) {
    renamed["proj_updater.instance." + name.substr(std::string("net.").size())] = tensor;
  }
  renamed["proj_updater.calls_since_last_redraw"] = Tensor::FromInts({}, {7});
  WriteWeights(directory, renamed);
  EXPECT_EQ(LargestDifference(Compute(*Load(directory), {item})[0], expected), 0);
}

TEST_F(PerformerTest, IsThatOfScBertWithItsArgument) {
  for (const char* wrong : {"rotary_position_emb", "axial_position_emb", "shift_tokens"}) {
    EXPECT_THAT(ModelError(R"("g2v_position_emb": true, ")" + std::string(wrong) + R"(": true)"),
                HasSubstr(wrong + std::string("\" is true, expected false with g2v_position_emb")));
  }
  EXPECT_THAT(ModelError(R"("g2v_position_emb": false, "cross_attend": true)"),
              HasSubstr("expected false with g2v_position_emb"));
  EXPECT_THAT(ModelError(R"("g2v_position_emb": true, "attn_out_bias": false)"),
              HasSubstr("expected true with g2v_position_emb"));
  EXPECT_THAT(StackError(R"("g2v_position_emb": true)"), HasSubstr("unknown parameter"));
  // Those by which it was served before it had an argument of its own.
  const TensorMap weights = ReadWeights(Init(
      kPerformerLanguageModel,
      PerformerModel(
          R"("g2v_position_emb": true, "rotary_position_emb": false, "attn_out_bias": true)")));
  EXPECT_EQ(weights.at("pos_emb.emb.weight").shape(), Shape({208, 12}));
  EXPECT_EQ(weights.count("performer.net.layers.0.0.fn.to_out.bias"), 1);
  EXPECT_EQ(weights.count("performer.net.layers.0.0.fn.to_q.bias"), 0);
  EXPECT_EQ(
      ReadWeights(Init(kPerformerLanguageModel, PerformerModel(R"("g2v_position_emb": false)")))
          .count("pos_emb.emb.weight"),
      0);
}

TEST_F(PerformerTest, GivesTheRowsOfScBertByTensorsToo) {
  for (const char* golden : {"performer-lm-scbert", "performer-lm-scbert-ragged"}) {
    const std::string directory = DataFile(std::string("goldens/") + golden);
    const std::vector<Item> items = {Tokens(7, 30), Tokens(1, 30), Tokens(40, 30), Tokens(40, 30)};
    const auto expected = Compute(*Load(directory), items);
    const auto computed = Compute(*LoadOn("simulated:0", directory), items);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_LT(LargestDifference(computed[i], expected[i]), kTolerance) << golden << ", " << i;
    }
  }
}

TEST_F(PerformerTest, TurnsRowsFarFromTheFirstByTensorsAsByBlocks) {
  const std::string directory =
      Directory(kPerformer, PerformerStack(R"("dim_head": 16, "local_attn_heads": 3)"));
  const std::vector<Item> items = {Floats(30000, 12)};
  const TensorMap expected = Compute(*Load(directory), items)[0];
  EXPECT_LT(LargestDifference(Compute(*LoadOn("simulated:0", directory), items)[0], expected),
            kTolerance);
}

TEST_F(PerformerTest, IgnoresTheCounterOfItsTrainingWhereverItStands) {
  const std::string stack = Directory(kPerformer, PerformerStack(""));
  const std::string model = Directory(kPerformerLanguageModel, PerformerModel(""));
  for (const auto& [directory, scope] :
       {std::pair<std::string, std::string>(stack, ""), {model, "performer."}}) {
    TensorMap weights = ReadWeights(directory);
    for (const char* owner : {"", "proj_updater."}) {
      weights[scope + owner + "calls_since_last_redraw"] = Tensor::FromInts({}, {7});
    }
    WriteWeights(directory, weights);
    EXPECT_TRUE(LoadModel(directory, {}).ok()) << directory;
  }
}

TEST_F(PerformerTest, DoesWithoutTheHeadWhereEncodingsAreReturned) {
  const std::string directory = Directory(kPerformerLanguageModel, PerformerModel(""));
  const Item item = Tokens(11, 30);
  const TensorMap expected = Compute(*Load(directory), {item})[0];
  TensorMap weights = ReadWeights(directory);
  weights.erase("to_out.weight");
  weights.erase("to_out.bias");
  weights["to_out.conv1.weight"] = RandomFloats({1, 1, 1, 12});  // one's own
  WriteWeights(directory, weights);
  EXPECT_THAT(LoadModel(directory, {}).status().message(), HasSubstr("to_out.conv1.weight"));
  Write(directory, "config.json",
        R"({"architecture": "performer_pytorch.PerformerLM", "params": )" + PerformerModel("") +
            R"(, "call": {"return_encodings": true}})");
  const TensorMap encodings = Compute(*Load(directory), {item})[0];
  EXPECT_EQ(LargestDifference(encodings.at("embeddings"), expected.at("embeddings")), 0);
}

TEST_F(PerformerTest, NeedsTheProjectionsThatItWasTrainedWith) {
  const std::string directory = Directory(kPerformer, PerformerStack(""));
  TensorMap weights = ReadWeights(directory);
  weights.erase("net.layers.1.0.fn.fast_attention.projection_matrix");
  WriteWeights(directory, weights);
  EXPECT_THAT(LoadModel(directory, {}).status().message(), HasSubstr("projection_matrix [5, 4]"));
}

TEST_F(PerformerTest, RequiresTheContextThatItAttendsToAndTakesNoOther) {
  const auto crossing = Make(kPerformer, PerformerStack(R"("cross_attend": true)"));
  EXPECT_THAT(Validate(crossing->info().signature, Floats(5, 12)).message(),
              HasSubstr("'context': it is missing"));
  Item item = Floats(5, 12);
  item.inputs["context"] = RandomFloats({3, 12});
  EXPECT_THAT(Validate(Make(kPerformer, PerformerStack(""))->info().signature, item).message(),
              HasSubstr("no such input"));
}

TEST_F(PerformerTest, LimitsLengthsToThoseOfItsTables) {
  const auto longest = [&](const std::string& more) {
    const auto model = Make(kPerformerLanguageModel, PerformerModel(more));
    return LongestFor(model->info().signature, Item(), 'n');
  };
  const std::string axial = R"("rotary_position_emb": false, "axial_position_emb": true)";
  EXPECT_EQ(longest(""), 208);
  EXPECT_EQ(longest(axial), 208);  // of the 256 that the table has
  EXPECT_EQ(longest(axial + R"(, "axial_position_shape": [5, 6])"), 30);
}

TEST_F(PerformerTest, ComputesInOtherTypesCloseToFloat32) {
  for (const std::string& type : TypesOfCpu()) {
    if (type == "f32") continue;
    for (const char* more : {"", R"("causal": true, "reversible": true)",
                             R"("generalized_attention": true, "ff_glu": true)",
                             R"("no_projection": true, "local_attn_heads": 1)"}) {
      const std::string directory = Init(
          kPerformerLanguageModel,
          R"({"num_tokens": 30, "dim": 64, "depth": 2, "max_seq_len": 64, "heads": 4,
                   "dim_head": 16, "local_window_size": 16, )" +
              (*more == '\0' ? std::string() : more + std::string(", ")) + R"("qkv_bias": true})");
      const auto exact = Load(directory);
      const auto rounded = Load(directory, {.dtype = type});
      for (const int64_t length : {1, 20, 64}) {
        const Item item = Tokens(length, 30);
        EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("embeddings"),
                                 Compute(*rounded, {item})[0].at("embeddings")),
                  type == "int8" ? 0.99 : 0.999)
            << more << ", " << length << " rows in " << type;
      }
    }
  }
}

TEST_F(PerformerTest, CountsParametersAndOperations) {
  const ModelReport report = *InspectModel(Directory(
      kPerformer, R"({"dim": 8, "depth": 1, "heads": 2, "dim_head": 4, "nb_features": 6})"));
  // These are q, k, v and out with biases, the feed-forward and two norms. The projection is a
  // buffer.
  EXPECT_EQ(report.info.parameters, 4 * 72 + (8 * 32 + 32) + (32 * 8 + 8) + 2 * 16);
  // Four products of width 8; in 2 heads for queries and for keys 6 features of 4 numbers, which
  // meet 4 values and a sum; the feed-forward.
  EXPECT_NEAR(report.flops_per_token, 4 * 2 * 64 + 2 * 2 * (2 * 6 * 4 + 2 * 6 * 5) + 2 * 2 * 8 * 32,
              1);
}

}  // namespace
}  // namespace linserve
