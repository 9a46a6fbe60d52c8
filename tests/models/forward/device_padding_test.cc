#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

TEST_F(DeviceModelTest, ComputesPaddedSequencesTogetherWhereItHasNoKernelForPackedOnes) {
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"molformer.MolformerModel", R"({"vocab_size": 30, "hidden_size": 32,
               "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48})"},
           {"performer_pytorch.PerformerLM",
            R"({"num_tokens": 30, "max_seq_len": 64, "dim": 32, "depth": 1, "heads": 2})"}}) {
    SCOPED_TRACE(architecture);
    const auto model = LoadOn("simulated:0", Init(architecture, params), "bf16");
    ASSERT_EQ(model->info().padding, Padding::kBucket);
    const auto launches = [&](int64_t sequences) {
      std::vector<Item> items;
      for (int64_t i = 0; i < sequences; ++i) items.push_back(Tokens(9 + i % 5, 30));
      return LaunchesOf(*model, items, Padding::kBucket);
    };
    EXPECT_EQ(launches(60), launches(10));
  }
}

TEST_F(DeviceModelTest, TakesPackedSequencesWhoseScoresDependOnDistancesOrWindows) {
  const std::string sizes = R"({"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 48)";
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"transformers.MPNetModel", sizes + "}"},
           {"jina_bert.JinaBertModel", sizes + "}"},
           {"transformers.ModernBertModel", sizes + R"(, "local_attention": 8})"},
           {"transformers.Qwen3Model", sizes + R"(, "num_key_value_heads": 1, "head_dim": 16})"},
           {"transformers.T5EncoderModel", R"({"vocab_size": 30, "d_model": 32, "d_kv": 16,
               "d_ff": 48, "num_layers": 1, "num_heads": 2})"}}) {
    SCOPED_TRACE(architecture);
    const auto model = LoadOn("simulated:0", Init(architecture, params), "bf16");
    EXPECT_EQ(model->info().padding, Padding::kPacked);
    EXPECT_EQ(LaunchesOf(*model, 60, Pooling::kMean), LaunchesOf(*model, 10, Pooling::kMean));
  }
}

TEST_F(DeviceModelTest, HasPositionsInPaddingThatTakesPartAsOnTheCpu) {
  const std::string sizes = R"({"num_tokens": 30, "dim": 32, "depth": 1, "heads": 2)";
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"linear_attention_transformer.LinearAttentionTransformerLM",
            sizes + R"(, "max_seq_len": 64})"},
           {"linear_attention_transformer.LinearAttentionTransformerLM",
            sizes + R"(, "max_seq_len": 64, "use_axial_pos_emb": false})"},
           {"linformer.LinformerLM", sizes + R"(, "seq_len": 40, "k": 16})"}}) {
    SCOPED_TRACE(architecture + params);
    const std::string directory = Init(architecture, params);
    const std::vector<Item> items = {Tokens(9, 30), Tokens(33, 30)};
    const auto expected = Compute(*Load(directory), items, Padding::kZeros);
    for (const char* dtype : {"f32", "bf16", "f16"}) {
      const auto model = LoadOn("simulated:0", directory, dtype);
      const auto results = Compute(*model, items, Padding::kZeros);
      for (size_t i = 0; i < items.size(); ++i) {
        EXPECT_GE(SmallestCosine(expected[i].at("embeddings"), results[i].at("embeddings")), 0.99);
      }
    }
  }
}

TEST_F(DeviceModelTest, WantsPaddingWhereItsKernelsDoNotTakeTheWidthOfAHead) {
  const auto padding = [&](const std::string& architecture, const std::string& params) {
    return LoadOn("simulated:0", Init(architecture, params), "bf16")->info().padding;
  };
  const auto bert = [&](int heads) {
    return padding("transformers.BertModel",
                   R"({"vocab_size": 30, "hidden_size": 48, "num_hidden_layers": 1,
                       "intermediate_size": 48, "num_attention_heads": )" +
                       std::to_string(heads) + "}");
  };
  EXPECT_EQ(bert(3), Padding::kPacked);
  EXPECT_EQ(bert(4), Padding::kBucket);
  const auto linformer = [&](int heads) {
    return padding("linformer.Linformer",
                   R"({"dim": 144, "seq_len": 40, "depth": 1, "k": 16, "heads": )" +
                       std::to_string(heads) + "}");
  };
  EXPECT_EQ(linformer(2), Padding::kPacked);
  EXPECT_EQ(linformer(1), Padding::kBucket);
}

TEST_F(DeviceModelTest, WantsPaddingWhereOnlyAPartGainsByIt) {
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"performer_pytorch.PerformerLM", R"({"num_tokens": 30, "max_seq_len": 64, "dim": 32,
                "depth": 1, "heads": 2, "shift_tokens": true})"},
           {"linserve.Encoder", R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2, "k": 16,
                "seq_len": 40, "attention": "linformer", "causal": true})"}}) {
    const auto model = LoadOn("simulated:0", Init(architecture, params), "f32");
    EXPECT_EQ(model->info().padding, Padding::kBucket) << architecture;
  }
}

TEST_F(DeviceModelTest, OfALinformerWithoutKernelsWantsPadding) {
  const std::string directory = Init("linformer.Linformer", R"({"dim": 64, "seq_len": 40,
                                                                "depth": 1, "heads": 2, "k": 16})");
  EXPECT_EQ(LoadOn("simulated:0", directory, "f32")->info().padding, Padding::kBucket);
  EXPECT_EQ(LoadOn("simulated:0", directory, "bf16")->info().padding, Padding::kPacked);
  EXPECT_EQ(LoadOn("cpu", directory, "f32")->info().padding, Padding::kPacked);
}

TEST_F(DeviceModelTest, TakesSequencesOfLinearMultiheadAttentionTogether) {
  const auto model = LoadOn("simulated:0",
                            Init("linear_multihead_attention.LinearMultiheadAttention",
                                 R"({"embed_dim": 64, "num_heads": 2, "seq_len": 40, "proj_k": 16,
                                     "projection_layout": "corrected"})"),
                            "bf16");
  ASSERT_EQ(model->info().padding, Padding::kPacked);
  const auto launches = [&](int64_t sequences) {
    std::vector<Item> items;
    for (int64_t i = 0; i < sequences; ++i) {
      Item& item = items.emplace_back();
      for (const char* name : {"query", "key", "value"}) {
        item.inputs[name] = RandomFloats({9 + i % 5, 64});
      }
    }
    return LaunchesOf(*model, items);
  };
  EXPECT_EQ(launches(50), launches(5));
}

TEST_F(DeviceModelTest, ComputesABertsSequencesTogether) {
  for (const char* architecture :
       {"transformers.BertModel", "transformers.RobertaModel", "transformers.ModernBertModel"}) {
    SCOPED_TRACE(architecture);
    const auto model =
        LoadOn("simulated:0", Init(architecture, R"({"vocab_size": 30, "hidden_size": 32,
                                  "num_hidden_layers": 2, "num_attention_heads": 2,
                                  "intermediate_size": 48})"),
               "bf16");
    const int64_t launches = LaunchesOf(*model, 60, Pooling::kMean);
    EXPECT_EQ(launches, LaunchesOf(*model, 20, Pooling::kMean));
    // Hugging Face's clients send a mask that hides nothing.
    std::vector<Item> masked;
    for (int64_t i = 0; i < 60; ++i) {
      masked.push_back(Tokens(1 + i % 13, 30));
      masked.back().inputs["attention_mask"] = MaskOf(1 + i % 13, 0, 1 + i % 13);
      masked.back().options.pooling = Pooling::kMean;
    }
    EXPECT_LE(LaunchesOf(*model, masked), launches);
  }
}

TEST_F(DeviceModelTest, ComputesSequencesOfOneLengthTogetherWithoutKernelsToo) {
  const auto model =
      LoadOn("simulated:0", Init("linformer.Linformer", R"({"dim": 64, "seq_len": 40, "depth": 1,
                                                            "heads": 2, "k": 16})"),
             "f32");
  const auto launches = [&](size_t sequences) {
    return LaunchesOf(*model, std::vector<Item>(sequences, Floats(12, 64)));
  };
  EXPECT_EQ(launches(50), launches(5));
}

TEST_F(DeviceModelTest, ComputesPaddedSequencesTogetherWithoutKernelsToo) {
  const auto model =
      LoadOn("simulated:0", Init("linformer.Linformer", R"({"dim": 64, "seq_len": 40, "depth": 1,
                                                            "heads": 2, "k": 16})"),
             "f32");
  const auto launches = [&](int64_t sequences) {
    std::vector<Item> items;
    for (int64_t i = 0; i < sequences; ++i) items.push_back(Floats(9 + i % 5, 64));
    if (sequences < 10) ExpectTheSameAloneAndTogether(*model, items);
    return LaunchesOf(*model, items, Padding::kBucket);
  };
  EXPECT_EQ(launches(50), launches(5));
}

TEST_F(DeviceModelTest, AsksForNoMoreWhereABatchHasMoreSequences) {
  const std::string encoder = R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2,
      "attention": "elu", "max_seq_len": 40, "positions": ")";
  for (const char* positions : {"learned", "sinusoidal", "rotary"}) {
    SCOPED_TRACE(positions);
    const auto model =
        LoadOn("simulated:0", Init("linserve.Encoder", encoder + positions + R"("})"), "bf16");
    for (const Pooling pooling : {Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kMax}) {
      EXPECT_EQ(LaunchesOf(*model, 50, pooling), LaunchesOf(*model, 5, pooling));
    }
  }
}

}  // namespace
}  // namespace linserve
