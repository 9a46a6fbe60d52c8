#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/linear_multihead_attention/fixture.h"

namespace linserve {
namespace {

using testing::HasSubstr;

TEST_F(LinearMultiheadAttentionTest, HeadwiseAndUnknownWordsOfSharingComputeWhatNoneDoes) {
  const auto result = [&](const std::string& sharing) {
    auto model = Make(Corrected(R"(, "param_sharing": ")" + sharing + "\""));
    random_.seed(1);
    return Compute(*model, {Call(5, 11)})[0];
  };
  const TensorMap none = result("none");
  EXPECT_EQ(LargestDifference(result("headwise"), none), 0);
  EXPECT_EQ(LargestDifference(result("kv"), none), 0);
  EXPECT_GT(LargestDifference(result("layerwise"), none), 1e-3);
}

TEST_F(LinearMultiheadAttentionTest, ReadsASharedProjectionUnderEitherName) {
  const std::string directory = Directory(Corrected(R"(, "param_sharing": "layerwise")"));
  const Item item = Call(5, 11);
  const TensorMap expected = Compute(*Load(directory), {item})[0];
  TensorMap weights = ReadWeights(directory);
  EXPECT_FALSE(weights.contains("f_proj_weight"));
  weights["f_proj_weight"] = weights.at("e_proj_weight");
  weights.erase("e_proj_weight");
  const std::string renamed =
      Init(kMultiheadAttention, Corrected(R"(, "param_sharing": "layerwise")"));
  WriteWeights(renamed, weights);
  EXPECT_EQ(LargestDifference(Compute(*Load(renamed), {item})[0], expected), 0);
}

TEST_F(LinearMultiheadAttentionTest, ThePackagesLayoutMixesTheSequencesOfARequest) {
  auto model = Make(Package());
  EXPECT_TRUE(model->info().signature.request_is_unit);
  const Item first = Call(4, kMultiheadLength);
  const auto with = [&](const Item& second) { return Compute(*model, {first, second})[0]; };
  EXPECT_GT(LargestDifference(with(Call(4, kMultiheadLength)), with(Call(4, kMultiheadLength))),
            1e-3);
  EXPECT_FALSE(Make(Corrected())->info().signature.request_is_unit);
}

TEST_F(LinearMultiheadAttentionTest, ThePackagesLayoutIsTheSameInEveryPadding) {
  for (const char* options : {"", R"(, "add_bias_kv": true, "add_zero_attn": true)"}) {
    auto model = Make(Package(options));
    const int64_t keys = model->info().signature.limits[0].longest;
    for (int round = 0; round < 20; ++round) {
      std::vector<Item> items;
      const int64_t count = Any(1, 6);
      for (int64_t i = 0; i < count; ++i) items.push_back(Call(Any(1, 45), keys));
      const auto packed = Compute(*model, items);
      for (Padding padding : {Padding::kBucket, Padding::kFixed, Padding::kZeros}) {
        const auto padded = Compute(*model, items, padding);
        for (size_t i = 0; i < items.size(); ++i) {
          ASSERT_LT(LargestDifference(packed[i], padded[i]), kTolerance) << Name(padding);
        }
      }
    }
  }
}

TEST_F(LinearMultiheadAttentionTest, ThePackagesLayoutIgnoresTheKeyPaddingMask) {
  auto model = Make(Package());
  Item item = Call(4, kMultiheadLength);
  const TensorMap unmasked = Compute(*model, {item})[0];
  item.inputs["key_padding_mask"] = Bools({kMultiheadLength}, true);
  EXPECT_EQ(LargestDifference(Compute(*model, {item})[0], unmasked), 0);
}

TEST_F(LinearMultiheadAttentionTest, LimitsTheKeysByItsLayout) {
  const auto check = [&](const std::string& params, int64_t keys) {
    return std::string(Validate(Make(params)->info().signature, Call(50, keys)).message());
  };
  EXPECT_EQ(check(Corrected(), kMultiheadLength), "");
  EXPECT_EQ(check(Corrected(), 1), "");
  EXPECT_THAT(check(Corrected(), kMultiheadLength + 1), HasSubstr("m is 21, expected at most 20"));
  EXPECT_THAT(check(Corrected(R"(, "add_bias_kv": true)"), kMultiheadLength),
              HasSubstr("m is 20, expected at most 19"));
  EXPECT_EQ(check(Package(), kMultiheadLength), "");
  EXPECT_THAT(check(Package(), kMultiheadLength - 1), HasSubstr("m is 19, expected exactly 20"));
  EXPECT_EQ(check(Package(R"(, "add_bias_kv": true)"), kMultiheadLength - 1), "");
}

TEST_F(LinearMultiheadAttentionTest, WarnsOfThePackagesLayoutAndOfUnknownSharing) {
  const auto warnings = [&](const std::string& params) {
    const auto report = InspectModel(Init(kMultiheadAttention, params));
    EXPECT_TRUE(report.ok()) << report.status();
    return report->warnings;
  };
  EXPECT_THAT(warnings(Package()), testing::ElementsAre(HasSubstr("change each other's results")));
  EXPECT_THAT(warnings(Corrected()), testing::IsEmpty());
  EXPECT_THAT(warnings(Corrected(R"(, "param_sharing": "headwise")")), testing::IsEmpty());
  EXPECT_THAT(warnings(Corrected(R"(, "param_sharing": "kv")")),
              testing::ElementsAre(HasSubstr("\"kv\" acts as \"none\"")));
  // What is made anew is corrected unless it is told otherwise.
  EXPECT_THAT(warnings(MultiheadArguments()), testing::IsEmpty());
}

TEST_F(LinearMultiheadAttentionTest, IsThePackagesLayoutWhereTheConfigurationNamesNone) {
  const std::string directory = Directory(Corrected());
  Write(directory, "config.json",
        std::string(R"({"architecture": ")") + kMultiheadAttention + R"(", "params": )" +
            MultiheadArguments() + "}");
  EXPECT_TRUE(Load(directory)->info().signature.request_is_unit);
}

TEST_F(LinearMultiheadAttentionTest, RefusesImpossibleArguments) {
  EXPECT_THAT(Error(R"({"embed_dim": 10, "num_heads": 4})"),
              HasSubstr("\"embed_dim\" is 10, expected a multiple of num_heads = 4"));
  EXPECT_THAT(Error(R"({"num_heads": 4})"), HasSubstr("\"embed_dim\" is missing"));
  EXPECT_THAT(Error(MultiheadArguments(R"(, "projection_layout": "fixed")")),
              HasSubstr("\"projection_layout\" is \"fixed\", expected one of package, corrected"));
  EXPECT_THAT(Error(R"({"embed_dim": 8, "num_heads": 4, "seq_len": 1, "add_bias_kv": true})"),
              HasSubstr("\"seq_len\" is 1, expected at least 2"));
  EXPECT_THAT(Error(MultiheadArguments(R"(, "param_sharing": 3)")),
              HasSubstr("\"param_sharing\" is 3, expected a string"));
  EXPECT_THAT(Error(MultiheadArguments(R"(, "kdim": 0)")), HasSubstr("\"kdim\" is 0"));
}

TEST_F(LinearMultiheadAttentionTest, HasThePackagesParametersAndTheFlopsOfItsProducts) {
  const auto report = InspectModel(Init(kMultiheadAttention, R"({"embed_dim": 64, "num_heads": 4,
      "seq_len": 512, "proj_k": 32, "kdim": 48, "vdim": 40, "add_bias_kv": true})"));
  ASSERT_TRUE(report.ok()) << report.status();
  const int64_t in_projections = 64 * 64 + 64 * 48 + 64 * 40 + 3 * 64;
  EXPECT_EQ(report->info.parameters,
            in_projections + 2 * 32 * 512 + 2 * 32 + 2 * 64 + 64 * 64 + 64);
  // A token takes q, k, v and out; E and F; scores and values.
  const double by_hand =
      2.0 * (64 * 64 + 64 * 48 + 64 * 40 + 64 * 64) + 4.0 * 32 * 64 + 4.0 * 32 * 64;
  EXPECT_NEAR(report->flops_per_token / by_hand, 1, 0.05);
}

}  // namespace
}  // namespace linserve
