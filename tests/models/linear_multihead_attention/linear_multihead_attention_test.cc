#include <gtest/gtest.h>

#include "models/linear_multihead_attention/fixture.h"

namespace linserve {
namespace {

// Cuts both inputs that are keys to rows [begin, end).
Item WithKeys(const Item& item, int64_t begin, int64_t end) {
  Item cut = item;
  for (const char* name : {"key", "value"}) {
    cut.inputs[name] = item.inputs.at(name).Rows(begin, end);
  }
  return cut;
}

TEST_F(LinearMultiheadAttentionTest, GivesASequenceTheSameRowsInAnyCompanyAndPadding) {
  for (const char* options :
       {"", R"(, "param_sharing": "layerwise", "bias": false)", R"(, "kdim": 10, "vdim": 12)",
        R"(, "add_bias_kv": true)", R"(, "add_zero_attn": true, "proj_k": 30)",
        R"(, "add_bias_kv": true, "add_zero_attn": true, "kdim": 10)"}) {
    auto model = Make(Corrected(options));
    const Signature& signature = model->info().signature;
    const int64_t kdim = signature.FindInput("key")->axes[1].size;
    const int64_t vdim = signature.FindInput("value")->axes[1].size;
    const int64_t longest = signature.limits[0].longest;
    for (int round = 0; round < 16; ++round) {
      std::vector<Item> items;
      const int64_t count = Any(1, 7);
      const bool masked = round % 2 == 1;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t keys = round == 0 ? longest : Any(1, longest);
        items.push_back(Call(Any(1, 45), keys, kdim, vdim));
        if (masked) items.back().inputs["key_padding_mask"] = RandomMask(keys);
      }
      SCOPED_TRACE(options);
      ExpectTheSameAloneAndTogether(*model, items);
    }
  }
}

TEST_F(LinearMultiheadAttentionTest, TakesMaskedKeysAtTheEndForKeysThatAreNotThere) {
  auto model = Make(Corrected());
  Item masked = Call(6, 15);
  masked.inputs["key_padding_mask"] = MaskOf(15, 9, 15);
  const Item shorter = WithKeys(masked, 0, 9);
  Item unmasked = shorter;
  unmasked.inputs.erase("key_padding_mask");
  EXPECT_LT(LargestDifference(Compute(*model, {masked})[0], Compute(*model, {unmasked})[0]),
            kTolerance);
}

TEST_F(LinearMultiheadAttentionTest, WeightsAddUpToOne) {
  auto model = Make(Corrected(R"(, "add_zero_attn": true)"));
  const Tensor weights = Compute(*model, {Call(5, 11)})[0].at("weights");
  ASSERT_EQ(weights.shape(), (Shape{5, kProjected + 1}));
  for (int64_t row = 0; row < 5; ++row) {
    float sum = 0;
    for (int64_t slot = 0; slot <= kProjected; ++slot) {
      sum += weights.data<float>()[row * (kProjected + 1) + slot];
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_F(LinearMultiheadAttentionTest, GivesNoWeightsUnlessTheCallNeedsThem) {
  const std::string directory = Directory(Corrected());
  Write(directory, "config.json",
        std::string(R"({"architecture": ")") + kMultiheadAttention + R"(", "params": )" +
            Corrected() + R"(, "call": {"need_weights": false}})");
  EXPECT_EQ(Load(directory)->info().signature.FindOutput("weights"), nullptr);
}

TEST_F(LinearMultiheadAttentionTest, AMaskCountsForAllHeadsOrForEach) {
  auto model = Make(Corrected());
  Item item = Call(5, 11);
  const Tensor scores = RandomFloats({5, kProjected});
  item.inputs["attn_mask"] = scores;
  const TensorMap one = Compute(*model, {item})[0];
  std::vector<float> repeated;
  for (int head = 0; head < 4; ++head) {
    repeated.insert(repeated.end(), scores.data<float>(), scores.data<float>() + scores.elements());
  }
  item.inputs["attn_mask"] = Tensor::FromFloats({4, 5, kProjected}, repeated);
  EXPECT_EQ(LargestDifference(Compute(*model, {item})[0], one), 0);
  item.inputs.erase("attn_mask");
  EXPECT_GT(LargestDifference(Compute(*model, {item})[0], one), 1e-3);
}

TEST_F(LinearMultiheadAttentionTest, AMaskIsTheSameInAnyCompanyAndPadding) {
  for (const char* options : {"", R"(, "add_zero_attn": true, "add_bias_kv": true)"}) {
    auto model = Make(Corrected(options));
    std::vector<Item> items;
    for (int64_t keys : {3, 19, 8}) {
      items.push_back(Call(9, keys));
      items.back().inputs["attn_mask"] = RandomFloats({4, 9, kProjected});
    }
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(LinearMultiheadAttentionTest, AQueryThatMayLookNowhereGetsTheOutputBias) {
  const std::string directory = Directory(Corrected());
  const Tensor bias = *Convert(ReadWeights(directory).at("out_proj.bias"), DType::kF32);
  auto model = Load(directory);
  Item item = Call(3, 11);
  item.inputs["attn_mask"] = Bools({3, kProjected}, true);
  const TensorMap outputs = Compute(*model, {item})[0];
  EXPECT_LT(LargestDifference(outputs.at("y").Rows(1, 2), bias.Reshaped({1, 16})), 1e-6);
  EXPECT_EQ(LargestDifference(outputs.at("weights"),
                              Tensor::FromFloats({3, kProjected}, std::vector<float>(21))),
            0);
}

TEST_F(LinearMultiheadAttentionTest, TheZeroSlotStaysOpenToMasks) {
  auto model = Make(Corrected(R"(, "add_zero_attn": true)"));
  Item item = Call(2, 11);
  item.inputs["attn_mask"] = Bools({2, kProjected}, true);
  const Tensor weights = Compute(*model, {item})[0].at("weights");
  EXPECT_EQ(weights.data<float>()[kProjected], 1);
}

TEST_F(LinearMultiheadAttentionTest, ComputesInBfloat16CloseToFloat32) {
  SKIP_WITHOUT_TYPE("bf16");
  for (const std::string& params :
       {Corrected(R"(, "embed_dim": 64, "add_bias_kv": true)"), Package(R"(, "embed_dim": 64)")}) {
    const std::string directory = Init(kMultiheadAttention, params);
    auto exact = Load(directory);
    ModelLoadOptions options;
    options.dtype = "bf16";
    auto rounded = Load(directory, options);
    const int64_t keys = exact->info().signature.limits[0].longest;
    Item item = Call(30, keys, 64, 64);
    item.inputs["query"] = RandomFloats({30, 64});
    const TensorMap rows = Compute(*exact, {item})[0];
    const TensorMap close = Compute(*rounded, {item})[0];
    EXPECT_GE(SmallestCosine(rows.at("y"), close.at("y")), 0.999);
    EXPECT_GE(SmallestCosine(rows.at("weights"), close.at("weights")), 0.999);
  }
}

}  // namespace
}  // namespace linserve
