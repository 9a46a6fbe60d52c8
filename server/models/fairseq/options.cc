#include "models/fairseq/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <system_error>

namespace linserve::fairseq {
namespace {

// The arguments of a checkpoint hold these, too, which change nothing at inference.
constexpr std::array kOfTraining = {"activation_dropout",
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

// Holds the sizes that a registered architecture has where they are not given.
struct Sizes {
  int64_t layers, dim, inner, heads;
};

Sizes SizesOf(Params& params) {
  constexpr std::array kSizes = {"encoder_layers", "encoder_embed_dim", "encoder_ffn_embed_dim",
                                 "encoder_attention_heads"};
  const bool all =
      std::all_of(kSizes.begin(), kSizes.end(), [&](const char* size) { return params.Has(size); });
  // Configurations of Hydra name the architecture by "_name", arguments by "arch".
  std::string name = "linformer_roberta";
  for (const char* key : {"_name", "arch"}) {
    if (all) {
      params.Ignore(key);  // an architecture of one's own may have any name
    } else {
      name = params.Choice(
          key, name, {"linformer_roberta", "linformer_roberta_base", "linformer_roberta_large"});
    }
  }
  if (name == "linformer_roberta_large") return {24, 1024, 4096, 16};
  return {12, 768, 3072, 12};
}

// Reads which layers are kept, as their numbers by commas. Returns how many they are.
int64_t KeptLayers(Params& params, const std::string& kept, int64_t depth) {
  constexpr const char* kKey = "encoder_layers_to_keep";
  std::set<int64_t> layers;
  const char* const end = kept.data() + kept.size();
  for (const char* at = kept.data();; ++at) {
    int64_t layer = -1;
    const auto [stop, error] = std::from_chars(at, end, layer);
    const bool another = error == std::errc() && layer >= 0 && layers.insert(layer).second;
    if (!another || (stop != end && *stop != ',')) {
      params.Fail(kKey, "different layers' numbers by commas, such as \"0,2,4\"");
    }
    if (stop == end) break;
    at = stop;
  }
  // The arguments of a model that has been made hold the number of those that it kept.
  if (std::ssize(layers) > depth) params.Fail(kKey, "some of encoder_layers, by commas");
  return std::ssize(layers);
}

int64_t DepthOf(Params& params, int64_t usual) {
  const int64_t depth = params.Depth("encoder_layers", usual);
  const std::string kept = params.Text("encoder_layers_to_keep", "");
  return kept.empty() ? depth : KeptLayers(params, kept, depth);
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
  const Sizes usual = SizesOf(params);
  options.vocabulary = params.Positive("vocab_size");
  options.padding = params.NotNegative("padding_idx", 1);
  if (options.padding >= options.vocabulary) {
    params.Fail("padding_idx", "less than vocab_size = " + std::to_string(options.vocabulary));
  }
  options.dim = params.Positive("encoder_embed_dim", usual.dim);
  options.heads = params.Heads("encoder_attention_heads", usual.heads);
  if (options.dim % options.heads != 0) {
    params.Fail("encoder_embed_dim",
                "a multiple of encoder_attention_heads = " + std::to_string(options.heads));
  }
  options.inner = params.Positive("encoder_ffn_embed_dim", usual.inner);
  options.depth = DepthOf(params, usual.layers);
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
