#include "models/forward/recorded_passes.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "attention/rows/aten.h"
#include "core/tensor/comparison.h"
#include "models/checkpoint/checkpoint.h"
#include "models/config/model_config.h"
#include "models/devices.h"
#include "models/forward/pass_results.h"
#include "models/registry.h"
#include "support/paths.h"

namespace linserve {
namespace {

// These run on the simulated device, where a graph is replayed operator by operator: what it baked
// in is as wrong there for another batch as it would be on a GPU.
class RecordedPassesTest : public testing::Test {
 protected:
  // Without `most_sequences` of the longest, as many are recorded as any model is.
  void Load(const std::string& architecture, const nlohmann::json& params, at::ScalarType type,
            std::optional<double> most_sequences = {}) {
    ASSERT_TRUE(PlanDevices("simulated:0", BuiltFile("lib")).ok());
    recorded_.reset();
    parameters_ = ParameterList();
    const c10::InferenceMode no_autograd;
    placement_.emplace(at::Device("simulated:0"));
    network_ = MakeNetwork({.architecture = architecture, .params = params, .wrapper = nullptr});
    network_->Declare(Scope(parameters_));
    InitParameters(parameters_, 1);
    for (const Parameter& parameter : parameters_) {
      *parameter.slot = parameter.slot->to(placement_->device()).to(type);
    }
    parameters_.Load(DType::kF32, [](const Parameter&) {});
    type_ = type;
    info_.signature = network_->signature();
    // Without a limit passes are recorded for lengths up to thousands, which takes most of the
    // time.
    info_.signature.limits = {{'n', longest_, ""}};
    info_.dtype = type == at::kFloat ? DType::kF32 : DType::kBF16;
    const double most_flops =
        most_sequences ? *most_sequences * network_->Flops(longest_) : RecordedPasses::kMostFlops;
    recorded_.emplace(*network_, info_, *placement_, most_flops);
    recorded_->Record();
  }

  void LoadLinformer(int64_t depth, at::ScalarType type = at::kBFloat16) {
    Load("linformer.Linformer",
         {{"dim", 64}, {"seq_len", longest_}, {"depth", depth}, {"k", 16}, {"heads", 2}}, type);
  }

  // Returns the arguments of a small BertModel, which most encoders take.
  nlohmann::json Bert() const {
    return {{"vocab_size", 50},        {"hidden_size", 64},
            {"num_hidden_layers", 1},  {"num_attention_heads", 2},
            {"intermediate_size", 64}, {"max_position_embeddings", longest_ + 2}};
  }

  // Makes a packed batch of random rows, or tokens, of these lengths.
  TensorBatch BatchOf(const std::vector<int64_t>& lengths) {
    PlacedLayout layout{LayOut(lengths)};
    const bool tokens = info_.signature.inputs[0].kind == InputKind::kToken;
    const at::Tensor rows = tokens ? at::randint(0, 50, {layout.rows}, at::kLong)
                                   : at::randn({layout.rows, 64}).to(type_);
    TensorBatch batch;
    batch.size = layout.sequences();
    batch.inputs["x"] = placement_->ToDevice(rows);
    placement_->AddTable(layout);
    batch.axes['n'] = std::move(layout);
    return batch;
  }

  std::vector<TensorMap> Results(Pass& pass, const std::map<char, PlacedLayout>& axes,
                                 Pooling pooling) const {
    Wanted wanted;
    wanted.options.pooling = pooling;
    const std::vector<Wanted> each(axes.at('n').lengths.size(), wanted);
    auto results = ResultsOf(pass, info_.signature, *placement_, axes, each, [] {});
    Placement::Finished(*placement_).Wait();
    return results;
  }

  void ExpectTheRowsOfAPassThatIsNotRecorded(const std::vector<int64_t>& lengths) {
    const c10::InferenceMode no_autograd;
    const Placement::Entered entered(*placement_);
    const TensorBatch batch = BatchOf(lengths);
    const std::unique_ptr<Pass> eager = network_->Begin(batch);
    while (eager->Step()) {
    }
    const auto replayed = recorded_->Replay(batch);
    ASSERT_TRUE(replayed.has_value());
    for (const Pooling pooling : {Pooling::kNone, Pooling::kMean, Pooling::kLast}) {
      const auto expected = Results(*eager, batch.axes, pooling);
      const auto results = Results(*replayed->pass, replayed->axes, pooling);
      ASSERT_EQ(results.size(), lengths.size());
      for (size_t i = 0; i < lengths.size(); ++i) {
        const auto& [name, rows] = *expected[i].begin();
        ASSERT_EQ(results[i].at(name).shape(), rows.shape());
        const auto comparison = Compare(results[i].at(name), rows);
        ASSERT_TRUE(comparison.ok()) << comparison.status();
        EXPECT_LT(comparison->largest, 0.05) << "sequence " << i << " of " << lengths.size();
        EXPECT_GT(comparison->smallest_cosine, 0.9999);
      }
    }
  }

  bool Replays(const TensorBatch& batch) {
    const c10::InferenceMode no_autograd;
    const Placement::Entered entered(*placement_);
    return recorded_->Replay(batch).has_value();
  }

  int64_t longest_ = 40;  // not a power of two, so that it is a length of its own
  std::optional<Placement> placement_;
  ParameterList parameters_;
  std::unique_ptr<Network> network_;
  at::ScalarType type_ = at::kBFloat16;
  ModelInfo info_;
  std::optional<RecordedPasses> recorded_;
};

TEST_F(RecordedPassesTest, GiveTheRowsOfOthersWhateverTheLengths) {
  LoadLinformer(/*depth=*/2);
  for (const std::vector<int64_t>& lengths : std::vector<std::vector<int64_t>>{
           {40}, {1}, {32}, {33, 1, 39}, {5, 4, 3, 2, 1}, {40, 1, 39}, {7, 7}}) {
    ExpectTheRowsOfAPassThatIsNotRecorded(lengths);
  }
}

TEST_F(RecordedPassesTest, GiveThemOfALanguageModel) {
  Load("linformer.LinformerLM",
       {{"num_tokens", 50},
        {"dim", 64},
        {"seq_len", longest_},
        {"depth", 1},
        {"k", 16},
        {"heads", 2}},
       at::kBFloat16);
  ExpectTheRowsOfAPassThatIsNotRecorded({30, 1, 2});
  ExpectTheRowsOfAPassThatIsNotRecorded({3, 38});
}

TEST_F(RecordedPassesTest, GiveThemOfLinearAttentionAndEncoders) {
  const nlohmann::json lat = {{"dim", 64}, {"heads", 2}, {"depth", 1}, {"max_seq_len", longest_}};
  nlohmann::json causal = lat;
  causal["causal"] = true;
  nlohmann::json tokens = causal;
  tokens["num_tokens"] = 50;
  tokens["dim_head"] = 32;
  const nlohmann::json elu = {{"dim", 64}, {"heads", 2}, {"depth", 1}, {"attention", "elu"}};
  nlohmann::json rotary = elu;
  rotary["positions"] = "rotary";
  const nlohmann::json linformer = {{"dim", 64},
                                    {"heads", 2},
                                    {"depth", 1},
                                    {"attention", "linformer"},
                                    {"k", 12},
                                    {"seq_len", longest_},
                                    {"num_tokens", 50},
                                    {"positions", "learned"},
                                    {"max_seq_len", longest_}};
  const nlohmann::json bert = Bert();
  const std::string transformer = "linear_attention_transformer.LinearAttentionTransformer";
  for (const auto& [architecture, params] :
       std::vector<std::pair<std::string, nlohmann::json>>{{transformer, lat},
                                                           {transformer, causal},
                                                           {transformer + "LM", tokens},
                                                           {"linserve.Encoder", elu},
                                                           {"linserve.Encoder", rotary},
                                                           {"linserve.Encoder", linformer},
                                                           {"transformers.BertModel", bert},
                                                           {"transformers.RobertaModel", bert}}) {
    SCOPED_TRACE(architecture + params.dump());
    Load(architecture, params, at::kBFloat16);
    ExpectTheRowsOfAPassThatIsNotRecorded({33, 1, 40});
    ExpectTheRowsOfAPassThatIsNotRecorded({5, 4, 3, 2, 1});
    ExpectTheRowsOfAPassThatIsNotRecorded({31, 39});
  }
}

// Kernels take sequences tile by tile, and have tiles for longer ones than there are.
TEST_F(RecordedPassesTest, GiveThemOfEncodersWhoseRowsSeeOthersByTheirDistance) {
  longest_ = 150;
  const nlohmann::json bert = Bert();
  nlohmann::json windows = bert;
  windows.update(
      {{"local_attention", 60}, {"num_hidden_layers", 3}, {"global_attn_every_n_layers", 2}});
  nlohmann::json grouped = bert;
  grouped.update({{"num_key_value_heads", 1}, {"head_dim", 32}});
  const nlohmann::json t5 = {{"vocab_size", 50}, {"d_model", 64},   {"d_kv", 32},
                             {"d_ff", 64},       {"num_layers", 2}, {"num_heads", 2}};
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, nlohmann::json>>{
           {"transformers.MPNetModel", bert},
           {"jina_bert.JinaBertModel", bert},
           {"transformers.ModernBertModel", windows},
           {"transformers.Qwen3Model", grouped},
           {"transformers.T5EncoderModel", t5}}) {
    SCOPED_TRACE(architecture + params.dump());
    Load(architecture, params, at::kBFloat16, /*most_sequences=*/4);
    ExpectTheRowsOfAPassThatIsNotRecorded({130, 1, 64, 65});
    ExpectTheRowsOfAPassThatIsNotRecorded({3, 17});
  }
}

TEST_F(RecordedPassesTest, LeaveBatchesAloneThatKeepTheDeviceBusy) {
  LoadLinformer(/*depth=*/1);
  EXPECT_TRUE(Replays(BatchOf({40, 40, 40})));
  Load("linformer.Linformer",
       {{"dim", 64}, {"seq_len", longest_}, {"depth", 1}, {"k", 16}, {"heads", 2}}, at::kBFloat16,
       /*most_sequences=*/2);
  EXPECT_TRUE(Replays(BatchOf({40, 40})));
  EXPECT_FALSE(Replays(BatchOf({40, 40, 40})));
}

TEST_F(RecordedPassesTest, LeaveBatchesAloneThatHoldMore) {
  Load("linear_attention_transformer.LinearAttentionTransformer",
       {{"dim", 64}, {"heads", 2}, {"depth", 1}, {"max_seq_len", longest_}}, at::kBFloat16);
  TensorBatch batch = BatchOf({32});
  EXPECT_TRUE(Replays(batch));
  batch.inputs["input_mask"] = placement_->ToDevice(at::ones({32}, at::kBool));
  EXPECT_FALSE(Replays(batch));
}

TEST_F(RecordedPassesTest, LeaveBatchesAloneThatAreLarge) {
  longest_ = 72;  // 64 of them are more than 4,096 rows
  LoadLinformer(/*depth=*/1);
  EXPECT_TRUE(Replays(BatchOf(std::vector<int64_t>(64, 32))));
  EXPECT_FALSE(Replays(BatchOf(std::vector<int64_t>(65, 1))));
  EXPECT_FALSE(Replays(BatchOf(std::vector<int64_t>(64, 72))));
}

TEST_F(RecordedPassesTest, AreNoneWithoutAKernelThatReadsTheLengths) {
  LoadLinformer(/*depth=*/1, at::kFloat);
  EXPECT_FALSE(Replays(BatchOf({32})));
}

TEST_F(RecordedPassesTest, AreNoneOfNetworksThatTheyWouldBeWrongFor) {
  Load("linear_attention_transformer.LinearAttentionTransformer",
       {{"dim", 64},
        {"heads", 2},
        {"depth", 1},
        {"max_seq_len", longest_},
        {"n_local_attn_heads", 1},
        {"local_attn_window_size", 8}},
       at::kBFloat16);
  EXPECT_FALSE(Replays(BatchOf({32})));
}

}  // namespace
}  // namespace linserve
