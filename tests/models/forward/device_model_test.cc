#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

TEST_F(DeviceModelTest, GivesTheRowsOfTheCpuWhateverThePositions) {
  const std::string sizes = R"("dim": 64, "depth": 1, "heads": 2, "k": 16, "seq_len": 40,)";
  for (const char* attention : {"softmax", "efficient", "elu", "taylor", "linformer"}) {
    for (const char* positions : {"none", "learned", "sinusoidal", "rotary"}) {
      const std::string params = "{" + sizes + R"("max_seq_len": 40, "attention": ")" + attention +
                                 R"(", "positions": ")" + positions + R"("})";
      ExpectTheRowsOfTheCpu("linserve.Encoder", params,
                            [&](int64_t length) { return Floats(length, 64); });
    }
  }
  const std::string lm = "linear_attention_transformer.LinearAttentionTransformerLM";
  for (const char* positions : {R"("use_rotary_emb": true)", R"("use_axial_pos_emb": true)",
                                R"("use_axial_pos_emb": false)"}) {
    const std::string params = R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2,
        "dim_head": 32, "max_seq_len": 40, "local_attn_window_size": 8, "return_embeddings": true,)" +
                               std::string(positions) + "}";
    ExpectTheRowsOfTheCpu(lm, params, [&](int64_t length) { return Tokens(length, 30); });
  }
}

// Queries far behind what a mask leaves see nothing in their windows.
TEST_F(DeviceModelTest, GivesTheRowsOfTheCpuWhereWindowsAreHidden) {
  ExpectTheRowsOfTheCpu("transformers.ModernBertModel",
                        R"({"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 3,
                            "num_attention_heads": 2, "intermediate_size": 48,
                            "local_attention": 4})",
                        [&](int64_t length) {
                          Item item = Tokens(length, 30);
                          item.inputs["attention_mask"] = MaskOf(length, 0, (length + 3) / 4);
                          return item;
                        });
}

TEST_F(DeviceModelTest, TakesLinformersOfAnyHeadsAndSlots) {
  for (const auto& [heads, slots] : {std::pair{4, 20}, std::pair{2, 16}, std::pair{8, 1}}) {
    const std::string params = R"({"dim": 80, "seq_len": 40, "depth": 1, "heads": )" +
                               std::to_string(heads) + R"(, "k": )" + std::to_string(slots) + "}";
    ExpectTheRowsOfTheCpu("linformer.Linformer", params,
                          [&](int64_t length) { return Floats(length, 80); });
  }
}

TEST_F(DeviceModelTest, ComputesInSixteenBitsUnlessOthersAreAskedFor) {
  const std::string directory = Init("linserve.Encoder", R"({"dim": 64, "depth": 1, "heads": 2})");
  EXPECT_EQ(LoadOn("simulated:0", directory, "default")->info().dtype, DType::kBF16);
  EXPECT_EQ(LoadOn("simulated:0", directory, "f32")->info().dtype, DType::kF32);
  EXPECT_EQ(LoadOn("cpu", directory, "default")->info().dtype, DType::kF32);
}

TEST_F(DeviceModelTest, ComputesALinformersLayerByAtMostNineLaunches) {
  ExpectLaunchesOfALayer("linformer.LinformerLM",
                         R"({"num_tokens": 30, "dim": 64, "seq_len": 40, "k": 16, "heads": 2,
                             "depth": )",
                         9);
}

TEST_F(DeviceModelTest, ComputesABertsLayerByAtMostSevenLaunches) {
  ExpectLaunchesOfALayer("transformers.BertModel",
                         R"({"vocab_size": 30, "hidden_size": 32, "num_attention_heads": 2,
                             "intermediate_size": 48, "num_hidden_layers": )",
                         7);
}

TEST_F(DeviceModelTest, GivesTheRowsOfTheCpuWhereverAnEncoderHasItsNorms) {
  const std::string sizes = R"({"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2,
                                "num_attention_heads": 2, "intermediate_size": 48)";
  for (const char* more : {"}", R"(, "hidden_act": "relu"})"}) {
    ExpectTheRowsOfTheCpu("transformers.BertModel", sizes + more,
                          [&](int64_t length) { return Tokens(length, 30); });
  }
  for (const char* more : {"}", R"(, "attention_bias": true, "mlp_bias": true})"}) {
    ExpectTheRowsOfTheCpu("transformers.ModernBertModel", sizes + more,
                          [&](int64_t length) { return Tokens(length, 30); });
  }
}

TEST_F(DeviceModelTest, AddsWhatTheRowsOfADeepLinformerLack) {
  const std::string sizes = R"({"dim": 64, "seq_len": 40, "depth": 5, "heads": 2, "k": 16)";
  for (const char* kind : {R"(, "reversible": true})", "}"}) {
    ExpectTheRowsOfTheCpu("linformer.Linformer", sizes + kind,
                          [&](int64_t length) { return Floats(length, 64); });
  }
}

TEST_F(DeviceModelTest, PoolsTheRowsThatTheCpuPools) {
  const std::string directory =
      Directory("linserve.Encoder", R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2})");
  const auto on_cpu = Load(directory);
  const auto on_device = LoadOn("simulated:0", directory);
  for (const bool masked : {false, true}) {
    std::vector<Item> items;
    for (const Pooling pooling : {Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kMax}) {
      for (const int64_t length : {1, 30, 4, 17}) {
        items.push_back(Tokens(length, 30));
        items.back().options.pooling = pooling;
        if (masked && length > 1) items.back().inputs["input_mask"] = MaskOf(length, 1, length - 1);
        if (masked && length == 1) items.back().inputs["input_mask"] = MaskOf(length, 0, 1);
      }
    }
    const auto expected = Compute(*on_cpu, items);
    const auto computed = Compute(*on_device, items);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_LT(LargestDifference(computed[i], expected[i]), kTolerance) << i;
    }
  }
}

}  // namespace
}  // namespace linserve
