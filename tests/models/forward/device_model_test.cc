#include <gmock/gmock.h>

#include <thread>

#include "models/model_fixture.h"
#include "models/simulated.h"

namespace linserve {
namespace {

// These compute on the simulated device, which counts what it is asked for, and can be lost.
class DeviceModelTest : public ModelFixture {
 protected:
  ~DeviceModelTest() override {
    simulated_.lose(1, false);
    simulated_.stall(false);
  }

  std::unique_ptr<Model> LoadOn(const std::string& device, const std::string& directory,
                                const std::string& dtype = "f32") {
    ModelLoadOptions options;
    options.device = device;
    options.dtype = dtype;
    return Load(directory, options);
  }

  // Expects of sequences of several lengths the rows that the CPU computes.
  void ExpectTheRowsOfTheCpu(const std::string& architecture, const std::string& params,
                             const std::function<Item(int64_t)>& make) {
    SCOPED_TRACE(architecture + params);
    const std::string directory = Directory(architecture, params);
    const auto on_cpu = Load(directory);
    std::vector<Item> items;
    for (const int64_t length : {7, 1, 12, 12, 3}) items.push_back(make(length));
    const auto expected = Compute(*on_cpu, items);
    for (const char* dtype : {"f32", "bf16"}) {
      const auto on_device = LoadOn("simulated:0", directory, dtype);
      const auto computed = Compute(*on_device, items);
      for (size_t i = 0; i < items.size(); ++i) {
        const auto& [name, rows] = *expected[i].begin();
        EXPECT_GE(SmallestCosine(*Convert(computed[i].at(name), DType::kF32), rows), 0.999)
            << "sequence " << i << " in " << dtype;
      }
    }
  }

  // Counts what a device is asked for by a batch of these, results included.
  int64_t LaunchesOf(Model& model, const std::vector<Item>& items,
                     Padding padding = Padding::kPacked) {
    Compute(model, items, padding);  // what is done once
    const int64_t before = simulated_.launches();
    Compute(model, items, padding);
    return simulated_.launches() - before;
  }

  // Counts it of so many sequences.
  int64_t LaunchesOf(Model& model, int64_t sequences, Pooling pooling) {
    std::vector<Item> items;
    for (int64_t i = 0; i < sequences; ++i) {
      items.push_back(Tokens(1 + i % 13, 30));
      items.back().options.pooling = pooling;
    }
    return LaunchesOf(model, items);
  }

  const SimulatedControl& simulated_ = Simulated();
};

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
  const auto launches = [&](int depth) {
    const auto model = LoadOn(
        "simulated:0",
        Init("linformer.LinformerLM", R"({"num_tokens": 30, "dim": 64, "seq_len": 40, "k": 16,
                                          "heads": 2, "depth": )" +
                                          std::to_string(depth) + "}"),
        "bf16");
    return LaunchesOf(*model, 40, Pooling::kMean);
  };
  EXPECT_LE(launches(3) - launches(2), 9);
}

TEST_F(DeviceModelTest, ComputesABertsLayerByAtMostSevenLaunches) {
  const auto launches = [&](int layers) {
    const auto model =
        LoadOn("simulated:0",
               Init("transformers.BertModel",
                    R"({"vocab_size": 30, "hidden_size": 32, "num_attention_heads": 2,
                                       "intermediate_size": 48, "num_hidden_layers": )" +
                        std::to_string(layers) + "}"),
               "bf16");
    return LaunchesOf(*model, 40, Pooling::kMean);
  };
  EXPECT_LE(launches(3) - launches(2), 7);
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

TEST_F(DeviceModelTest, ComputesPaddedSequencesTogetherWhereItHasNoKernelForPackedOnes) {
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"transformers.MPNetModel", R"({"vocab_size": 30, "hidden_size": 32,
               "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48})"},
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

TEST_F(DeviceModelTest, PoolsItsFirstRowsWithoutWaitingForTheDevice) {
  const auto model = LoadOn("simulated:0", Init("transformers.BertModel",
                                                R"({"vocab_size": 30, "hidden_size": 32,
                                  "num_hidden_layers": 1, "num_attention_heads": 2,
                                  "intermediate_size": 48})"));
  const Padder padder(model->info().signature, Padding::kPacked);
  Item item = Tokens(5, 30);
  item.options.outputs = {"pooler_output"};
  simulated_.stall(true);
  const auto forward = model->Start(padder.Pad({&item, &item}, model->allocator()));
  ASSERT_TRUE(forward.ok()) << forward.status();
  for (bool done = false; !done;) {
    const auto advanced = (*forward)->Advance();
    ASSERT_TRUE(advanced.ok()) << advanced.status();
    done = *advanced;
  }
  simulated_.stall(false);
  EXPECT_TRUE((*forward)->TakeResults().ok());
  EXPECT_THAT(Compute(*model, {item, item}, Padding::kZeros), testing::SizeIs(2));
}

TEST_F(DeviceModelTest, OfALinformerWithoutKernelsWantsPadding) {
  const std::string directory = Init("linformer.Linformer", R"({"dim": 64, "seq_len": 40,
                                                                "depth": 1, "heads": 2, "k": 16})");
  EXPECT_EQ(LoadOn("simulated:0", directory, "f32")->info().padding, Padding::kBucket);
  EXPECT_EQ(LoadOn("simulated:0", directory, "bf16")->info().padding, Padding::kPacked);
  EXPECT_EQ(LoadOn("cpu", directory, "f32")->info().padding, Padding::kPacked);
}

TEST_F(DeviceModelTest, AddsWhatTheRowsOfADeepLinformerLack) {
  const std::string sizes = R"({"dim": 64, "seq_len": 40, "depth": 5, "heads": 2, "k": 16)";
  for (const char* kind : {R"(, "reversible": true})", "}"}) {
    ExpectTheRowsOfTheCpu("linformer.Linformer", sizes + kind,
                          [&](int64_t length) { return Floats(length, 64); });
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

TEST_F(DeviceModelTest, TakesUpAndSavesSessionsWhileTheDeviceComputes) {
  const auto model = LoadOn("simulated:0", Init("linserve.Encoder", R"({"num_tokens": 30, "dim": 64,
      "depth": 1, "heads": 2, "attention": "elu", "causal": true})"));
  const Padder padder(model->info().signature, Padding::kPacked);
  const auto chunk_of = [&](const std::shared_ptr<SessionState>& state) {
    Item chunk = Tokens(5, 30);
    chunk.session = state;
    return chunk;
  };
  const auto session = *model->info().sessions->New();
  Compute(*model, {chunk_of(session)});
  simulated_.stall(true);
  EXPECT_TRUE(model->Save(*session).ok());
  for (const auto& next : {session, *model->info().sessions->New()}) {
    const Item chunk = chunk_of(next);
    const auto begun = model->Start(padder.Pad({&chunk}, model->allocator()));
    EXPECT_TRUE(begun.ok()) << begun.status();
  }
}

// A text is generated token by token.
TEST_F(DeviceModelTest, ComputesASessionsNextTokenWithoutWaitingForTheDevice) {
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"linserve.Encoder", R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2,
                                    "attention": "elu", "causal": true})"},
           {"linear_attention_transformer.LinearAttentionTransformerLM",
            R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2, "dim_head": 32,
                "max_seq_len": 64, "causal": true, "blindspot_size": 1})"}}) {
    SCOPED_TRACE(architecture);
    const auto model = LoadOn("simulated:0", Init(architecture, params), "bf16");
    const Padder padder(model->info().signature, Padding::kPacked);
    const auto session = *model->info().sessions->New();
    Item chunk = Tokens(5, 30);
    chunk.session = session;
    Compute(*model, {chunk});
    Item next = Tokens(1, 30);
    next.session = session;
    simulated_.stall(true);
    const auto forward = model->Start(padder.Pad({&next}, model->allocator()));
    ASSERT_TRUE(forward.ok()) << forward.status();
    for (bool done = false; !done;) {
      const auto advanced = (*forward)->Advance();
      ASSERT_TRUE(advanced.ok()) << advanced.status();
      done = *advanced;
    }
    simulated_.stall(false);
    EXPECT_TRUE((*forward)->TakeResults().ok());
  }
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

// A GPU's fault is found by whoever asks it next. Whatever is freed then, on any thread, must not
// ask it again: LibTorch ends the process where that fails.
TEST_F(DeviceModelTest, LeavesTheProcessAloneThatHasLostIt) {
  auto model = LoadOn("simulated:1", Init("linformer.LinformerLM",
                                          R"({"num_tokens": 30, "dim": 16, "seq_len": 32,
                                              "depth": 2, "k": 8, "heads": 4})"));
  const Padder padder(model->info().signature, Padding::kPacked);
  const Item item = Tokens(5, 30);
  const auto start = [&] { return model->Start(padder.Pad({&item}, model->allocator())); };
  std::vector<TensorMap> results = Compute(*model, {item, item});
  auto complete = start();
  ASSERT_TRUE(complete.ok());
  while (!*(*complete)->Advance()) {
  }
  auto begun = start();
  ASSERT_TRUE(begun.ok());
  simulated_.lose(1, true);
  EXPECT_EQ((*begun)->Advance().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ((*complete)->TakeResults().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(model->Start(padder.Pad({&item})).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(model->lost());
  // A caller reads slowly.
  std::thread([&] { results.clear(); }).join();
  begun->reset();
  complete->reset();
  model.reset();
}

}  // namespace
}  // namespace linserve
