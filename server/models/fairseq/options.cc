#include "models/fairseq/options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace linserve::fairseq {
namespace {

// The arguments of a checkpoint hold these, too, which change nothing at inference.
constexpr std::array kOfTraining = {"activation_dropout",
                                    "arch",
                                    "attention_dropout",
                                    "checkpoint_activations",
                                    "dropout",
                                    "encoder_layerdrop",
                                    "ffn_blocks_to_remove",
                                    "ffn_reg_scale_factor",
                                    "freeze_compress",
                                    "load_checkpoint_heads",
                                    "max_source_positions",
                                    "mha_heads_to_keep",
                                    "mha_reg_scale_factor",
                                    "min_params_to_wrap",
                                    "offload_activations",
                                    "pooler_activation_fn",
                                    "pooler_dropout",
                                    "quant_noise_pq_block_size",
                                    "quant_noise_scalar",
                                    "relu_dropout",
                                    "spectral_norm_classification_head"};

Activation ActivationOf(Params& params) {
  const std::string name = params.Choice(
      "activation_fn", "gelu", {"gelu", "gelu_accurate", "gelu_fast", "relu", "tanh", "linear"});
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  if (name == "linear") return Activation::kIdentity;
  return name == "gelu" ? Activation::kGelu : Activation::kTanhGelu;
}

// Reads an argument of type int that means yes or no.
bool Switch(Params& params, const char* key) {
  const int64_t value = params.NotNegative(key, 0);
  if (value > 1) params.Fail(key, "0 or 1");
  return value == 1;
}

int64_t DepthOf(Params& params) {
  const int64_t depth = params.Depth("encoder_layers", 12);
  const std::string kept = params.Text("encoder_layers_to_keep", "");
  if (kept.empty()) return depth;
  const int64_t count = 1 + std::count(kept.begin(), kept.end(), ',');
  if (count > depth) params.Fail("encoder_layers_to_keep", "some of encoder_layers, by commas");
  return count;
}

Options::Positions PositionsOf(Params& params, int64_t dim) {
  const bool learned = params.Flag("encoder_learned_pos", true);
  if (params.Flag("no_token_positional_embeddings", false)) return Options::Positions::kNone;
  if (learned) return Options::Positions::kLearned;
  constexpr int64_t kLeast = 4;  // with fewer the package divides by zero
  if (dim < kLeast) params.Fail("encoder_embed_dim", "at least 4, for sines and cosines");
  return Options::Positions::kSinusoidal;
}

void SetSizes(Options& options, Params& params) {
  options.vocabulary = params.Positive("vocab_size");
  options.padding = params.NotNegative("padding_idx", 1);
  if (options.padding >= options.vocabulary) {
    params.Fail("padding_idx", "less than vocab_size = " + std::to_string(options.vocabulary));
  }
  options.dim = params.Positive("encoder_embed_dim", 768);
  options.heads = params.Heads("encoder_attention_heads", 12);
  if (options.dim % options.heads != 0) {
    params.Fail("encoder_embed_dim",
                "a multiple of encoder_attention_heads = " + std::to_string(options.heads));
  }
  options.inner = params.Positive("encoder_ffn_embed_dim", 3072);
  options.depth = DepthOf(params);
  options.longest = params.Positive("max_positions", params.Positive("tokens_per_sample", 512));
  const int64_t ratio = params.Positive("compressed", 4);
  options.slots = options.longest / ratio;
  if (options.slots == 0) {
    params.Fail("compressed", "at most max_positions = " + std::to_string(options.longest));
  }
}

}  // namespace

Options Options::From(Params& params) {
  Options options;
  SetSizes(options, params);
  options.activation = ActivationOf(params);
  options.positions = PositionsOf(params, options.dim);
  options.embeddings_scaled = !params.Flag("no_scale_embedding", true);
  options.embeddings_normed = params.Flag("layernorm_embedding", true);
  const bool noise = params.Number("quant_noise_pq", 0, 0, std::numeric_limits<double>::max()) > 0;
  options.embeddings_mapped = !params.Flag("adaptive_input", false) && noise;
  options.pre_norm = params.Flag("encoder_normalize_before", false);
  options.keys_and_values_share = Switch(params, "shared_kv_compressed");
  options.layers_share = Switch(params, "shared_layer_kv_compressed");
  options.tied = !params.Flag("untie_weights_roberta", false);
  options.features_only = params.Call().Flag("features_only", false);
  for (const char* key : kOfTraining) params.Ignore(key);
  // A checkpoint of a training run may hold all of its arguments, some three hundred.
  if (params.Has("_name") || params.Has("task")) params.AcceptOthers();
  return options;
}

}  // namespace linserve::fairseq
