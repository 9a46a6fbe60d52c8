#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "support/programs.h"

namespace linserve {
namespace {

using nlohmann::json;

// Describes one input of a call: its shape in one sequence; floats, or token ids below a
// vocabulary.
struct SeedInput {
  std::string name;
  Shape shape;
  int64_t vocabulary = 0;
};

// Holds a constructor call as it stands in a package's README, at its own size, and a call of the
// module.
struct SeedCall {
  std::string name;
  std::string architecture;
  std::string params;
  std::vector<SeedInput> inputs;
  std::string output;  // the output that is computed
  Shape shape;         // shape of that output
  std::string wrapper = "null";
};

// Prints a call in GoogleTest's messages.
void PrintTo(const SeedCall& call, std::ostream* out) { *out << call.name; }

constexpr const char* kLanguageModel =
    R"({"num_tokens": 20000, "dim": 512, "seq_len": 4096, "depth": 12, "heads": 8, "k": 256,
        "one_kv_head": true, "share_kv": false})";
constexpr const char* kCausalLanguageModel =
    R"({"num_tokens": 20000, "dim": 512, "heads": 8, "depth": 1, "max_seq_len": 8192,
        "causal": true, "ff_dropout": 0.1, "attn_layer_dropout": 0.1, "attn_dropout": 0.1,
        "emb_dim": 128, "dim_head": 128, "blindspot_size": 64, "n_local_attn_heads": 4,
        "local_attn_window_size": 128, "reversible": true, "ff_chunks": 2, "ff_glu": true,
        "attend_axially": false, "shift_tokens": true})";
constexpr const char* kEncoderDecoder =
    R"({"encoder": {"num_tokens": 20000, "dim": 512, "heads": 8, "depth": 6, "max_seq_len": 4096,
                    "reversible": true, "n_local_attn_heads": 4, "return_embeddings": true},
        "decoder": {"num_tokens": 20000, "dim": 512, "heads": 8, "depth": 6, "causal": true,
                    "max_seq_len": 4096, "reversible": true, "receives_context": true,
                    "n_local_attn_heads": 4}})";

const std::vector<SeedCall>& SeedCalls() {
  static const std::vector<SeedCall> calls = {
      {"LinformerLM",
       "linformer.LinformerLM",
       kLanguageModel,
       {{"x", {4096}, 20000}},
       "y",
       {4096, 20000}},
      {"Linformer",
       "linformer.Linformer",
       R"({"dim": 512, "seq_len": 4096, "depth": 12, "heads": 8, "k": 256, "one_kv_head": true,
           "share_kv": true})",
       {{"x", {4096, 512}}},
       "y",
       {4096, 512}},
      {"LinformerSelfAttention",
       "linformer.LinformerSelfAttention",
       R"({"dim": 512, "seq_len": 4096, "heads": 8, "k": 256, "one_kv_head": true,
           "share_kv": true})",
       {{"x", {4096, 512}}},
       "y",
       {4096, 512}},
      {"LinformerContextKeys",
       "linformer.LinformerSelfAttention",
       R"({"dim": 512, "seq_len": 8192, "heads": 8, "k": 256, "one_kv_head": true,
           "share_kv": true})",
       {{"x", {2048, 512}}, {"context", {8192, 512}}},
       "y",
       {2048, 512}},
      {"LinformerPytorch",
       "linformer_pytorch.Linformer",
       R"({"input_size": 262144, "channels": 64, "dim_d": 256, "dim_k": 128, "dim_ff": 128,
           "dropout_ff": 0.15, "nhead": 4, "depth": 2, "dropout": 0.1, "activation": "gelu",
           "checkpoint_level": "C0", "parameter_sharing": "layerwise", "k_reduce_by_layer": 0})",
       {{"x", {262144, 64}}},
       "y",
       {262144, 64}},
      {"LinformerPytorchPadder",
       "linformer_pytorch.Linformer",
       R"({"input_size": 512, "channels": 16, "dim_d": 32, "dim_k": 16, "dim_ff": 32, "nhead": 6,
           "depth": 3, "checkpoint_level": "C1"})",
       {{"x", {500, 16}}},
       "y",
       {500, 16},
       R"({"type": "linformer_pytorch.Padder"})"},
      {"LinearAttentionTransformerLM",
       "linear_attention_transformer.LinearAttentionTransformerLM",
       kCausalLanguageModel,
       {{"x", {8192}, 20000}},
       "y",
       {8192, 20000}},
      {"LinearAttentionTransformer",
       "linear_attention_transformer.LinearAttentionTransformer",
       R"({"dim": 512, "heads": 8, "depth": 1, "max_seq_len": 8192, "n_local_attn_heads": 4})",
       {{"x", {8192, 512}}},
       "y",
       {8192, 512}},
      {"EncoderDecoder",
       "linear_attention_transformer.EncoderDecoder",
       kEncoderDecoder,
       {{"x", {4096}, 20000}, {"y", {4096}, 20000}},
       "embeddings",
       {4096, 512}},
      {"LinformerSettings",
       "linear_attention_transformer.LinearAttentionTransformerLM",
       R"({"num_tokens": 20000, "dim": 512, "heads": 8, "depth": 6, "max_seq_len": 4096,
           "linformer_settings": {"k": 256}})",
       {{"x", {4096}, 20000}},
       "embeddings",
       {4096, 512}},
      {"LinformerContextSettings",
       "linear_attention_transformer.LinearAttentionTransformerLM",
       R"({"num_tokens": 20000, "dim": 512, "heads": 8, "depth": 6, "max_seq_len": 4096,
           "causal": true, "context_linformer_settings": {"seq_len": 2048, "k": 256},
           "receives_context": true})",
       {{"x", {4096}, 20000}, {"context", {2048, 512}}},
       "embeddings",
       {4096, 512}},
      {"ImageLinearAttention",
       "linear_attention_transformer.ImageLinearAttention",
       R"({"chan": 32, "heads": 8, "key_dim": 64})",
       {{"x", {32, 256, 256}}},
       "y",
       {32, 256, 256}},
      {"LinearMultiheadAttention",
       "linear_multihead_attention.LinearMultiheadAttention",
       R"({"embed_dim": 512, "num_heads": 8})",
       {{"query", {512, 512}}, {"key", {512, 512}}, {"value", {512, 512}}},
       "y",
       {512, 512}},
      {"LinearMultiheadAttentionLayerwise",
       "linear_multihead_attention.LinearMultiheadAttention",
       R"({"embed_dim": 512, "num_heads": 8, "seq_len": 512, "proj_k": 256,
           "param_sharing": "layerwise"})",
       {{"query", {512, 512}}, {"key", {512, 512}}, {"value", {512, 512}}},
       "y",
       {512, 512}},
      {"LinearDetr",
       "linear_detr.Transformer",
       R"({"seq_len": 850, "num_queries": 100, "proj_k": 64})",
       {{"src", {850, 512}}, {"pos_embed", {850, 512}}, {"query_embed", {100, 512}}},
       "hs",
       {100, 512}},
      {"MethodSoftmax",
       "math.softmax",
       "{}",
       {{"query", {1000, 256}}, {"key", {1000, 256}}, {"value", {1000, 256}}},
       "y",
       {1000, 256}},
      {"MethodEfficient",
       "math.efficient",
       "{}",
       {{"query", {1000, 256}}, {"key", {1000, 256}}, {"value", {1000, 256}}},
       "y",
       {1000, 256}},
      {"MethodKernel",
       "math.kernel",
       "{}",
       {{"query", {1000, 256}}, {"key", {1000, 256}}, {"value", {1000, 256}}},
       "y",
       {1000, 256}},
      {"MethodTaylor",
       "math.taylor",
       "{}",
       {{"query", {1000, 256}}, {"key", {1000, 256}}, {"value", {1000, 256}}},
       "y",
       {1000, 256}},
      {"MethodLinformer",
       "math.linformer",
       "{}",
       {{"query", {1000, 256}},
        {"key", {1000, 256}},
        {"value", {1000, 256}},
        {"e", {100, 1000}},
        {"f", {100, 1000}}},
       "y",
       {1000, 256}},
  };
  return calls;
}

Tensor Random(const SeedInput& input, std::mt19937_64& random) {
  const auto count = static_cast<size_t>(ElementCount(input.shape));
  if (input.vocabulary > 0) {
    std::uniform_int_distribution<int64_t> token(0, input.vocabulary - 1);
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) id = token(random);
    return Tensor::FromInts(input.shape, ids);
  }
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return Tensor::FromFloats(input.shape, values);
}

// Adds a batch axis of one where the package has it. Inputs without one are as they are.
Tensor Batched(const SeedCall& call, const SeedInput& input, const Tensor& tensor) {
  if (input.name == "e" || input.name == "f") return tensor;
  Shape shape = input.shape;
  const bool length_first = call.architecture.starts_with("linear_multihead_attention.");
  shape.insert(shape.begin() + (length_first ? 1 : 0), 1);
  return tensor.Reshaped(shape);
}

class SeedTest : public ::testing::TestWithParam<SeedCall> {
 protected:
  void SetUp() override {
    const SeedCall& call = GetParam();
    std::mt19937_64 random(7);
    for (const SeedInput& input : call.inputs) inputs_[input.name] = Random(input, random);
    const Outcome made = RunLinserve({"init", "--architecture", call.architecture, "--params",
                                      call.params, "--wrapper", call.wrapper, "--output", model_});
    ASSERT_EQ(made.code, 0) << made.err;
  }

  // Returns the output as `run` computes it.
  Tensor Computed() {
    const SeedCall& call = GetParam();
    TensorMap file;
    for (const SeedInput& input : call.inputs) {
      file["input." + input.name] = Batched(call, input, inputs_.at(input.name));
    }
    EXPECT_TRUE(WriteSafetensors(directory_.File("in.safetensors"), file).ok());
    const Outcome run =
        RunLinserve({"run", "--model", model_, "--input", directory_.File("in.safetensors"),
                     "--output", directory_.File("out.safetensors"), "--outputs", call.output});
    EXPECT_EQ(run.code, 0) << run.err;
    const auto computed = ReadSafetensors(directory_.File("out.safetensors"));
    if (!computed.ok()) return {};
    return computed->tensors.at("output." + call.output).Reshaped(call.shape);
  }

  TempDir directory_;
  std::string model_ = directory_.File("models/seed");
  TensorMap inputs_;
};

TEST_P(SeedTest, IsInspectedRunAndServedAtItsOwnSize) {
  const SeedCall& call = GetParam();
  const Outcome inspected = RunLinserve({"inspect", "--model", model_});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, ::testing::HasSubstr("fits the configuration"));

  const Tensor computed = Computed();
  ASSERT_EQ(computed.shape(), call.shape);
  EXPECT_LT(Compare(computed, computed)->largest, 1);  // infinite if there is a NaN

  RunningServer server(directory_.File("models"));
  ASSERT_TRUE(server.ready());
  ClientOptions options = server.client_options();
  options.timeout = std::chrono::minutes(5);
  EmbeddingClient client(options);
  EmbedCall request;
  request.options.outputs = {call.output};
  request.sequences = {{"0", inputs_}};
  const auto results = client.Embed(request);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_TRUE(results->at(0).status.ok()) << results->at(0).status;
  const auto comparison = Compare(results->at(0).outputs.at(call.output), computed);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_LE(comparison->largest, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, SeedTest, ::testing::ValuesIn(SeedCalls()),
                         [](const auto& seed) { return seed.param.name; });

}  // namespace
}  // namespace linserve
