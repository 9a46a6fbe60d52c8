#include <gmock/gmock.h>

#include "models/linear_attention_transformer/fixture.h"

namespace linserve {
namespace {

using LatConfigTest = ModelFixture;

// Gives the arguments that all cases have in common, and `more`.
std::string LatArguments(const std::string& more) {
  return R"({"dim": 12, "depth": 2, "max_seq_len": 40, )" + more + "}";
}

#define EXPECT_REFUSED(architecture, more, text)                                       \
  EXPECT_NE(InitError(architecture, LatArguments(more)).find(text), std::string::npos) \
      << InitError(architecture, LatArguments(more))

TEST_F(LatConfigTest, HeadsMustDivideTheWidthOnlyWhereTheirWidthComesFromIt) {
  EXPECT_REFUSED(kLatStack, R"("heads": 5)",
                 "parameter \"dim\" is 12, expected a multiple of heads = 5");
  EXPECT_REFUSED(kLatStack, R"("heads": 5, "dim_head": 4, "attend_axially": true)",
                 "parameter \"dim\" is 12, expected a multiple of heads = 5");
  EXPECT_REFUSED(kLatStack, R"("heads": 5, "dim_head": 4, "linformer_settings": {"k": 4})",
                 "parameter \"dim\" is 12, expected a multiple of heads = 5");
  EXPECT_REFUSED(kLatLanguageModel, R"("num_tokens": 9, "heads": 5, "dim_head": null)",
                 "parameter \"dim\" is 12, expected a multiple of heads = 5");
  EXPECT_NE(Make(kLatStack, LatArguments(R"("heads": 5, "dim_head": 4)")), nullptr);
  EXPECT_NE(Make(kLatLanguageModel, LatArguments(R"("num_tokens": 9, "heads": 5)")), nullptr);
}

TEST_F(LatConfigTest, TheLanguageModelsHeadsAre64WideUnlessTheArgumentIsNone) {
  const auto width = [&](const std::string& more) {
    const auto weights =
        ReadWeights(Init(kLatLanguageModel, LatArguments(R"("num_tokens": 9, "heads": 2)" + more)));
    return weights.at("transformer.layers.layers.0.0.fn.to_q.weight").shape()[0];
  };
  EXPECT_EQ(width(""), 2 * 64);
  EXPECT_EQ(width(R"(, "dim_head": null)"), 12);
}

TEST_F(LatConfigTest, LocalHeadsAreOneNumberOrOneForEachLayer) {
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "n_local_attn_heads": [1])",
                 "parameter \"n_local_attn_heads\" is [1], expected an integer, or one for each "
                 "of depth = 2 layers");
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "n_local_attn_heads": [1, 5])",
                 "parameter \"n_local_attn_heads\" is [1,5], expected at most heads = 4");
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "n_local_attn_heads": "all")",
                 "parameter \"n_local_attn_heads\" is \"all\", expected an integer");
  EXPECT_REFUSED(kLatLanguageModel,
                 R"("num_tokens": 9, "heads": 4, "n_local_attn_heads": 1,
                    "local_attn_window_size": 16)",
                 "parameter \"max_seq_len\" is 40, expected a multiple of "
                 "local_attn_window_size = 16");
}

TEST_F(LatConfigTest, LinformersAttentionIsNeverCausal) {
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "causal": true, "linformer_settings": {"k": 4})",
                 "parameter \"linformer_settings\" is {\"k\":4}, expected none with causal");
}

TEST_F(LatConfigTest, SettingsAreObjectsOfTheirOwnArguments) {
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "linformer_settings": 4)",
                 "parameter \"linformer_settings\" is 4, expected an object");
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "context_linformer_settings": [4])",
                 "an object such as {\"seq_len\": 256, \"k\": 256}, or its 2 values as a list");
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "linformer_settings": {"k": 4, "seq_len": 9})",
                 "unknown parameter \"seq_len\"");
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "context_linformer_settings": {"k": 4})",
                 "parameter \"seq_len\" is missing");
}

TEST_F(LatConfigTest, RotaryPositionsNeedEvenWidthsAndNoAxialLayers) {
  EXPECT_REFUSED(kLatLanguageModel, R"("num_tokens": 9, "use_rotary_emb": true, "dim_head": 5)",
                 "parameter \"dim_head\" is 5, expected an even width");
  EXPECT_REFUSED(kLatLanguageModel, R"("num_tokens": 9, "use_rotary_emb": true, "emb_dim": 7)",
                 "parameter \"emb_dim\" is 7, expected an even width");
  EXPECT_REFUSED(kLatLanguageModel,
                 R"("num_tokens": 9, "heads": 4, "use_rotary_emb": true, "attend_axially": true)",
                 "parameter \"use_rotary_emb\" is true, expected false with attend_axially");
  EXPECT_REFUSED(kLatLanguageModel,
                 R"("num_tokens": 9, "heads": 4, "use_rotary_emb": true, "dim_head": null)",
                 "parameter \"dim_head\" is null, expected a width");
}

TEST_F(LatConfigTest, ReturnedEmbeddingsHaveTheModelsWidth) {
  EXPECT_REFUSED(kLatLanguageModel, R"("num_tokens": 9, "return_embeddings": true, "emb_dim": 8)",
                 "parameter \"emb_dim\" is 8, expected dim = 12 with return_embeddings");
}

TEST_F(LatConfigTest, TheShiftNeedsAFeatureInEachGroup) {
  EXPECT_NE(InitError(kLatStack, R"({"dim": 2, "depth": 1, "max_seq_len": 8, "heads": 1,
                                   "shift_tokens": true})")
                .find("parameter \"dim\" is 2, expected at least 3 with shift_tokens"),
            std::string::npos);
}

TEST_F(LatConfigTest, EachClassHasItsOwnArguments) {
  EXPECT_REFUSED(kLatLanguageModel, R"("num_tokens": 9, "bucket_size": 64)",
                 "unknown parameter \"bucket_size\"");
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "emb_dim": 9)", "unknown parameter \"emb_dim\"");
  EXPECT_REFUSED(kLatLanguageModel, R"("heads": 4)", "parameter \"num_tokens\" is missing");
  EXPECT_NE(Make(kLatStack, LatArguments(R"("heads": 4, "bucket_size": 32, "ff_dropout": 0.1,
                                         "attn_dropout": 0.1, "attn_layer_dropout": 0.1,
                                         "pkm_num_keys": 7)")),
            nullptr);
}

TEST_F(LatConfigTest, TakesNamedTuplesAsTheListsThatJsonMakesOfThem) {
  const auto cost = [&](const std::string& settings) {
    const auto report = InspectModel(
        Directory(kLatStack, LatArguments(R"("heads": 4, "receives_context": true, )" + settings)));
    EXPECT_TRUE(report.ok()) << report.status();
    return std::pair(report->parameters.size(), report->flops_per_token);
  };
  EXPECT_EQ(cost(R"("linformer_settings": [5], "context_linformer_settings": [20, 7])"),
            cost(R"("linformer_settings": {"k": 5},
                    "context_linformer_settings": {"seq_len": 20, "k": 7})"));
}

TEST_F(LatConfigTest, SaysWhichVersionOfLocalAttentionTheNumbersAreOf) {
  const auto sees_outside = [&](const std::string& version) {
    const auto report = InspectModel(
        Directory(kLatStack, LatArguments(R"("heads": 4, "n_local_attn_heads": 1, "causal": true,
                                   "local_attention": ")" +
                                          version + "\"")));
    EXPECT_TRUE(report.ok()) << report.status();
    return report->info.no_sessions.find("local_attention") != std::string::npos;
  };
  for (const char* version : {"1.5.3", "1.6.0", "1.8.4"}) EXPECT_TRUE(sees_outside(version));
  for (const char* version : {"1.4.4", "1.5.2", "1.8.5", "1.9.15", "1.11.2", "2.0.0"}) {
    EXPECT_FALSE(sees_outside(version)) << version;
  }
  for (const char* version : {"1.8", "new", "1.8.4.1", ""}) {
    EXPECT_REFUSED(kLatStack, R"("heads": 4, "local_attention": ")" + std::string(version) + "\"",
                   "expected a version of the package local-attention");
  }
  EXPECT_REFUSED(kLatStack, R"("heads": 4, "local_attention": 1)", "expected a string");
}

TEST_F(LatConfigTest, WarnsOfArgumentsThatThePackageIgnores) {
  const auto warnings = [&](const std::string& more) {
    return InspectModel(Directory(kLatStack, LatArguments(R"("heads": 4, )" + more)))->warnings;
  };
  EXPECT_TRUE(warnings(R"("attend_axially": true, "ff_glu": true)").empty());
  ASSERT_EQ(warnings(R"("ff_glu": true)").size(), 1u);
  EXPECT_NE(warnings(R"("ff_glu": true)")[0].find("ff_glu"), std::string::npos);
  EXPECT_EQ(warnings(R"("linformer_settings": {"k": 4}, "n_local_attn_heads": 1)").size(), 2u);
  EXPECT_THAT(warnings(R"("context_linformer_settings": {"seq_len": 8, "k": 4})"),
              testing::ElementsAre(testing::HasSubstr("without receives_context")));
  EXPECT_THAT(warnings(R"("pkm_layers": [0, 1])"),
              testing::ElementsAre(testing::HasSubstr("there is no layer 0")));
}

}  // namespace
}  // namespace linserve
