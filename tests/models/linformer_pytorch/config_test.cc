#include "models/linformer_pytorch/fixture.h"

namespace linserve {
namespace {

constexpr const char* kLptBase = R"("input_size": 40, "channels": 12, "dim_k": 8, "nhead": 3)";

class LptConfigTest : public ModelFixture {
 protected:
  ModelReport Inspected(const std::string& architecture, const std::string& params) {
    const auto report = InspectModel(Init(architecture, params));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ModelReport();
  }

  std::string Projections(const std::string& sharing) {
    const ModelReport report = Inspected(
        kLptStack, R"({"input_size": 16, "channels": 24, "dim_k": 4, "dim_ff": 8, "nhead": 12,
                       "depth": 12, "parameter_sharing": ")" +
                       sharing + "\"}");
    for (const auto& [name, fact] : report.facts) {
      if (name == "projections") return fact;
    }
    return "";
  }

  void ExpectRefused(const std::string& architecture, const std::string& params,
                     const std::string& part, const std::string& wrapper = "null") {
    const std::string error = InitError(architecture, params, wrapper);
    EXPECT_NE(error.find(part), std::string::npos) << params << "\n" << error;
  }

  void ExpectStackRefused(const std::string& more, const std::string& part) {
    ExpectRefused(kLptStack, LptArguments(kLptBase, more), part);
  }
};

TEST_F(LptConfigTest, CountsTheDistinctProjectionsOfEverySharing) {
  EXPECT_EQ(Projections("none"), "288 distinct matrices");
  EXPECT_EQ(Projections("headwise"), "24 distinct matrices");
  EXPECT_EQ(Projections("kv"), "12 distinct matrices");
  EXPECT_EQ(Projections("layerwise"), "1 distinct matrices");
}

TEST_F(LptConfigTest, CountsParametersAsPyTorchDoes) {
  // A layer has q, k, v of 3 heads of 4, w_o and two norms; ff; E and F of 8 and 5 slots, per head.
  const int64_t attention = 3 * 12 * 12 + 12 * 12 + 12 + 2 * 12;
  const int64_t feed_forward = 2 * 12 * 16 + 16 + 12 + 2 * 12;
  const int64_t projections = 6 * (8 * 40 + 8) + 6 * (5 * 40 + 5);
  const ModelReport report = Inspected(
      kLptStack, LptArguments(kLptBase, R"("dim_ff": 16, "depth": 2, "parameter_sharing": "none",
                                     "k_reduce_by_layer": 3)"));
  EXPECT_EQ(report.info.parameters, 2 * (attention + feed_forward) + projections);
  // The sinusoid's frequencies are a buffer, and the shared E counts once.
  const ModelReport model = Inspected(
      kLptLanguageModel, LptArguments(kLptBase, R"("dim_ff": 16, "num_tokens": 30, "emb_dim": 6)"));
  const int64_t embeddings = 30 * 6 + (6 * 12 + 12) + (12 * 6 + 6) + (30 * 6 + 30);
  EXPECT_EQ(model.info.parameters, 2 * (attention + feed_forward) + 8 * 40 + 8 + embeddings);
}

TEST_F(LptConfigTest, CountsTheFlopsOfAToken) {
  // q, k, v, w_o (4·2·c²), E and F (2·2·k·c), scores and values (2·2·k·c), ff (2·2·c·ff).
  const double layer = 8.0 * 144 + 8.0 * 8 * 12 + 4.0 * 12 * 16;
  EXPECT_NEAR(
      Inspected(kLptStack, LptArguments(kLptBase, R"("dim_ff": 16, "depth": 2)")).flops_per_token /
          (2 * layer),
      1, 0.05);
  // Full attention: scores and values of all 40 keys. A convolution: 2·2·c·4 for K and V.
  const double full = 8.0 * 144 + 4.0 * 40 * 12 + 4.0 * 12 * 16;
  EXPECT_NEAR(
      Inspected(kLptStack, LptArguments(kLptBase, R"("dim_ff": 16, "full_attention": true)"))
              .flops_per_token /
          full,
      1, 0.05);
  const double convolution = 8.0 * 144 + 4.0 * 12 * 4 + 4.0 * 8 * 12 + 4.0 * 12 * 16;
  EXPECT_NEAR(
      Inspected(kLptStack, LptArguments(kLptBase, R"("dim_ff": 16, "method": "convolution")"))
              .flops_per_token /
          convolution,
      1, 0.05);
  // A decoder has everything twice.
  EXPECT_NEAR(Inspected(kLptStack, LptArguments(kLptBase, R"("dim_ff": 16, "decoder_mode": true)"))
                      .flops_per_token /
                  (2 * layer),
              1, 0.05);
}

TEST_F(LptConfigTest, TakesNoneWhereThePackageTakesModulesOrMasks) {
  const std::string base = R"({"input_size": 40, "dim": 4, "channels": 12, "dim_k": 8, "nhead": 3,
                              "E_proj": null, "F_proj": null, "causal_mask": )";
  EXPECT_NE(Make(kLptAttention, base + "null}"), nullptr);
  ExpectRefused(kLptAttention, base + "[[true]]}", "null or nothing");
}

TEST_F(LptConfigTest, WarnsOfWhatHasNoEffect) {
  const ModelReport report =
      Inspected(kLptStack, LptArguments(kLptBase, R"("k_reduce_by_layer": 2)"));
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("k_reduce_by_layer has no effect"), std::string::npos);
}

TEST_F(LptConfigTest, RefusesImpossibleArgumentsWithTheirValueAndWhatIsAllowed) {
  ExpectStackRefused(R"("nhead": 5)", R"("channels" is 12, expected a multiple of nhead = 5)");
  ExpectStackRefused(R"("activation": "elu")", R"("activation" is "elu", expected one of gelu)");
  ExpectStackRefused(R"("checkpoint_level": "C3")", R"("checkpoint_level" is "C3", expected one)");
  ExpectStackRefused(R"("parameter_sharing": "all")", R"("parameter_sharing" is "all", expected)");
  ExpectStackRefused(R"("method": "pooling")", R"("method" is "pooling", expected one of)");
  ExpectStackRefused(R"("ff_intermediate": 10)", R"("ff_intermediate" is 10, expected nothing)");
  ExpectStackRefused(R"("ff_intermediate": 10, "parameter_sharing": "kv", "decoder_mode": true)",
                     "expected nothing in a decoder");
  ExpectStackRefused(
      R"("ff_intermediate": 10, "parameter_sharing": "kv", "include_ff": false, "depth": 2)",
      "without include_ff");
  ExpectStackRefused(
      R"("causal": true, "parameter_sharing": "kv", "depth": 2, "k_reduce_by_layer": 1)",
      R"("k_reduce_by_layer" is 1, expected 0 with causal attention)");
  ExpectRefused(kLptStack, R"({"input_size": 40, "channels": 12, "dim_k": 41, "nhead": 3,
                               "method": "convolution"})",
                R"("dim_k" is 41, expected at most input_size = 40)");
  ExpectRefused(kLptStack, R"({"input_size": 40, "channels": 12, "dim_k": 7, "nhead": 3,
                               "method": "convolution", "causal": true})",
                R"("dim_k" is 7, expected a number of slots that a causal convolution gives)");
  ExpectRefused(kLptStack, R"({"input_size": 40, "channels": 12})", R"("dim_k" is missing)");
  ExpectRefused(kLptLanguageModel, LptArguments(kLptBase, R"("num_tokens": 5, "emb_dim": 7)"),
                R"("emb_dim" is 7, expected an even number)");
  ExpectRefused(kLptAttention, LptArguments(kLptBase, ""), R"("dim" is missing)");
}

TEST_F(LptConfigTest, TakesAnyNumberOfSlotsWhereFullAttentionHasNone) {
  const ModelReport report =
      Inspected(kLptStack, R"({"input_size": 40, "channels": 12, "dim_k": 64, "nhead": 3,
                     "method": "convolution", "full_attention": true})");
  EXPECT_FALSE(report.parameters.empty());
}

TEST_F(LptConfigTest, RefusesEncodersAndDecodersThatDoNotFit) {
  const std::string base = R"("enc_num_tokens": 30, "dec_num_tokens": 30, "enc_input_size": 20,
      "enc_channels": 8, "enc_dim_k": 4, "dec_dim_k": 4)";
  const std::string fits = R"("dec_input_size": 20, "dec_channels": 8)";
  EXPECT_EQ(
      InitError(kLptEncDec, "{" + base + ", " + fits + ", \"dec_nhead\": 3}").find("dec_"),
      InitError(kLptEncDec, "{" + base + ", " + fits + ", \"dec_nhead\": 3}").find("dec_channels"));
  ExpectRefused(kLptEncDec, LptArguments(base, R"("dec_input_size": 30, "dec_channels": 8)"),
                R"("dec_input_size" is 30, expected enc_input_size = 20)");
  ExpectRefused(kLptEncDec, LptArguments(base, R"("dec_input_size": 20, "dec_channels": 12)"),
                R"("dec_channels" is 12, expected the width of the encoder's output)");
  ExpectRefused(kLptEncDec, LptArguments(base, fits + R"(, "dec_ff_intermediate": 8,
                                                      "dec_parameter_sharing": "kv")"),
                R"("dec_ff_intermediate" is 8, expected nothing in a decoder)");
  ExpectRefused(kLptEncDec, LptArguments(base, fits + R"(, "dec_k_reduce_by_layer": 1,
                                                      "dec_parameter_sharing": "kv")"),
                R"("dec_k_reduce_by_layer" is 1, expected 0)");
  ExpectRefused(kLptEncDec, LptArguments(base, fits), "\"wrapper\" is", kLptPadder);
}

TEST_F(LptConfigTest, AcceptsUsePosEmbIfItIsWhatTheModelHas) {
  EXPECT_NE(Load(Init(kLptStack, LptArguments(kLptBase, R"("use_pos_emb": false)"))), nullptr);
  ExpectStackRefused(R"("use_pos_emb": true)",
                     R"("use_pos_emb" is true, expected false or nothing)");
  const std::string tokens = R"("num_tokens": 5, "use_pos_emb": )";
  EXPECT_NE(Load(Init(kLptLanguageModel, LptArguments(kLptBase, tokens + "true"))), nullptr);
  ExpectRefused(kLptLanguageModel, LptArguments(kLptBase, tokens + "false"),
                R"("use_pos_emb" is false, expected true or nothing)");
}

TEST_F(LptConfigTest, AcceptsDropoutsAndTheFlagOfTheVisualizer) {
  const std::string directory =
      Init(kLptLanguageModel,
           LptArguments(kLptBase, R"("num_tokens": 5, "dropout": 0.1, "dropout_ff": 0.2,
                                             "dropout_tokens": 0.3)"));
  Write(
      directory, "config.json",
      R"({"architecture": "linformer_pytorch.LinformerLM", "call": {"visualize": true}, "params":)" +
          LptArguments(kLptBase, R"("num_tokens": 5)") + "}");
  EXPECT_NE(Load(directory), nullptr);
}

TEST_F(LptConfigTest, TakesAnyOfASharedTensorsNames) {
  const std::string directory = Init(kLptStack, LptArguments(kLptBase, R"("depth": 2)"));
  TensorMap weights = ReadWeights(directory);
  weights["seq.2.fn.heads.1.F.weight"] = weights.at("seq.0.fn.heads.0.E.weight");
  weights.erase("seq.0.fn.heads.0.E.weight");
  WriteWeights(directory, weights);
  EXPECT_NE(Load(directory), nullptr);
}

TEST_F(LptConfigTest, AsksForProjectionsThatAreNoParametersByName) {
  const std::string directory = Init(kLptStack, LptArguments(kLptBase, R"("method": "no_params")"));
  TensorMap weights = ReadWeights(directory);
  weights.erase("seq.0.fn.heads.0.E");
  WriteWeights(directory, weights);
  const auto model = LoadModel(directory, {});
  EXPECT_NE(model.status().message().find("seq.0.fn.heads.0.E [40, 8] (the package's state_dict"),
            std::string::npos)
      << model.status();
}

}  // namespace
}  // namespace linserve
