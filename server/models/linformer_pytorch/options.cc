#include "models/linformer_pytorch/options.h"

#include <algorithm>

namespace linserve::linformer_pytorch {
namespace {

using Owner = StackOptions::Owner;

ParameterSharing ReadSharing(Params& params, const std::string& key) {
  const std::string word = params.Choice(key, "layerwise", {"none", "headwise", "kv", "layerwise"});
  if (word == "none") return ParameterSharing::kNone;
  if (word == "headwise") return ParameterSharing::kHeadwise;
  return word == "kv" ? ParameterSharing::kKv : ParameterSharing::kLayerwise;
}

ProjectionMethod ReadMethod(Params& params, const std::string& key) {
  const std::string word =
      params.Choice(key, "learnable", {"learnable", "convolution", "no_params"});
  if (word == "convolution") return ProjectionMethod::kConvolution;
  return word == "no_params" ? ProjectionMethod::kNoParams : ProjectionMethod::kLearnable;
}

// The package's README gives the models an argument that its code no longer has.
void CheckPositions(Params& params, const std::string& key, bool has_positions) {
  if (params.Flag(key, has_positions) == has_positions) return;
  params.Fail(key, has_positions
                       ? "true or nothing: 0.19.3 has no such argument, and its language models "
                         "always add positions"
                       : "false or nothing: 0.19.3 has no such argument, and only its language "
                         "models add positions");
}

// The mask of causal attention has dim_k columns, whatever the layer.
void CheckCausal(const StackOptions& options, const Params& params, const std::string& prefix) {
  for (int64_t layer = 1; layer < options.depth; ++layer) {
    const HeadOptions heads = options.AttentionOf(layer, options.decoder_mode);
    if (!heads.causal || heads.full_attention || heads.slots() == options.attention.dim_k) continue;
    params.Fail(prefix + "k_reduce_by_layer", "0 with causal attention: its mask has dim_k = " +
                                                  std::to_string(options.attention.dim_k) +
                                                  " slots, and layer " + std::to_string(layer) +
                                                  " would have " + std::to_string(heads.slots()));
  }
}

void CheckIntermediate(const StackOptions& options, const Params& params,
                       const std::string& prefix) {
  if (!options.ff_intermediate) return;
  const std::string key = prefix + "ff_intermediate";
  if (options.attention.sharing == ParameterSharing::kLayerwise) {
    params.Fail(key, "nothing with parameter_sharing \"layerwise\"");
  }
  if (options.decoder_mode) params.Fail(key, "nothing in a decoder");
  if (!options.include_ff && options.depth > 1 && *options.ff_intermediate != options.channels()) {
    params.Fail(key, "nothing, or channels = " + std::to_string(options.channels()) +
                         ", without include_ff: only feed-forward layers change the width");
  }
}

HeadOptions ReadHeads(Params& params, const std::string& prefix, bool dim_k_has_default) {
  HeadOptions heads;
  heads.input_size = params.Positive(prefix + "input_size");
  heads.width = params.Positive(prefix + "channels");
  heads.heads = params.Heads(prefix + "nhead", 4);
  const auto dim_d = params.OptionalPositive(prefix + "dim_d");
  if (!dim_d && heads.width % heads.heads != 0) {
    params.Fail(prefix + "channels", "a multiple of " + prefix +
                                         "nhead = " + std::to_string(heads.heads) + " unless " +
                                         prefix + "dim_d is given");
  }
  heads.dim_head = dim_d.value_or(heads.width / heads.heads);
  heads.dim_k =
      dim_k_has_default ? params.Positive(prefix + "dim_k", 64) : params.Positive(prefix + "dim_k");
  heads.sharing = ReadSharing(params, prefix + "parameter_sharing");
  heads.method = ReadMethod(params, prefix + "method");
  heads.full_attention = params.Flag(prefix + "full_attention", false);
  heads.output_inner = params.OptionalPositive(prefix + "w_o_intermediate_dim");
  params.Ignore(prefix + "dropout");
  return heads;
}

}  // namespace

LayerScratch LayerScratch::From(Params& params) {
  const std::string level = params.Choice("checkpoint_level", "C0", {"C0", "C1", "C2"});
  if (level == "C0") return {16384, 4096, false};
  return {1024, 1024, level == "C2"};
}

int64_t HeadOptions::slots() const {
  // Where dim_k is more than the length, which only full attention allows, E and F are empty.
  const int64_t step = std::max<int64_t>(stride(), 1);
  return method == ProjectionMethod::kConvolution ? input_size / step : dim_k;
}

void HeadOptions::CheckProjection(const Params& params, const std::string& prefix) const {
  if (method != ProjectionMethod::kConvolution || full_attention) return;
  const std::string key = prefix + "dim_k";
  if (dim_k > input_size) {
    params.Fail(key, "at most input_size = " + std::to_string(input_size) +
                         " with the method \"convolution\"");
  }
  if (causal && slots() != dim_k) {
    params.Fail(key, "a number of slots that a causal convolution gives: windows of " +
                         std::to_string(stride()) + " in input_size = " +
                         std::to_string(input_size) + " are " + std::to_string(slots()));
  }
}

HeadOptions HeadOptions::FromAttention(Params& params) {
  HeadOptions options;
  options.input_size = params.Positive("input_size");
  options.dim_head = params.Positive("dim");
  options.width = params.Positive("channels");
  options.dim_k = params.Positive("dim_k");
  options.heads = params.Heads("nhead");
  options.sharing = ReadSharing(params, "parameter_sharing");
  options.method = ReadMethod(params, "method");
  options.full_attention = params.Flag("full_attention", false);
  options.causal = params.Flag("causal", false);
  options.output_inner = params.OptionalPositive("w_o_intermediate_dim");
  params.Ignore("dropout");
  for (const char* module : {"E_proj", "F_proj"}) {
    params.RequireNone(module, "the projections are in model.safetensors");
  }
  params.RequireNone("causal_mask", "\"causal\": true stands for the package's mask");
  options.CheckProjection(params, "");
  return options;
}

int64_t StackOptions::WidthBefore(int64_t layer) const {
  const bool inside = layer > 0 && layer < depth;
  return inside ? ff_intermediate.value_or(channels()) : channels();
}

HeadOptions StackOptions::AttentionOf(int64_t layer, bool cross) const {
  HeadOptions options = attention;
  options.width = WidthBefore(layer);
  // One tensor for the whole model is made for the first layer's slots.
  if (attention.sharing != ParameterSharing::kLayerwise) {
    options.dim_k = std::max<int64_t>(1, attention.dim_k - layer * k_reduce_by_layer);
  }
  // The package's decoder hides slots in the attention to the embeddings, and nothing in its
  // self-attention.
  options.causal = attention.causal && cross == decoder_mode;
  return options;
}

std::string StackOptions::Prefix(Owner owner) {
  if (owner == Owner::kEncoder) return "enc_";
  return owner == Owner::kDecoder ? "dec_" : "";
}

StackOptions StackOptions::From(Params& params, Owner owner) {
  const std::string prefix = Prefix(owner);
  const bool linformer = owner == Owner::kLinformer;
  StackOptions options;
  options.attention = ReadHeads(params, prefix, /*dim_k_has_default=*/!linformer);
  options.depth = params.Depth(prefix + "depth", linformer ? 1 : 2);
  options.dim_ff = params.Positive(prefix + "dim_ff", linformer ? 256 : 1024);
  options.k_reduce_by_layer = params.NotNegative(prefix + "k_reduce_by_layer", 0);
  options.include_ff = params.Flag(prefix + "include_ff", true);
  options.ff_intermediate = params.OptionalPositive(prefix + "ff_intermediate");
  const bool relu = params.Choice("activation", "gelu", {"gelu", "relu"}) == "relu";
  options.activation = relu ? Activation::kRelu : Activation::kGelu;
  options.scratch = LayerScratch::From(params);
  params.Ignore(prefix + "dropout_ff");
  CheckPositions(params, prefix + "use_pos_emb", !linformer);
  if (prefix.empty()) {
    options.decoder_mode = params.Flag("decoder_mode", false);
    options.attention.causal = params.Flag("causal", false);
  } else {
    options.decoder_mode = options.attention.causal = owner == Owner::kDecoder;
  }
  options.attention.CheckProjection(params, prefix);
  CheckCausal(options, params, prefix);
  CheckIntermediate(options, params, prefix);
  return options;
}

LanguageModelOptions LanguageModelOptions::From(Params& params, Owner owner) {
  const std::string prefix = StackOptions::Prefix(owner);
  LanguageModelOptions options;
  options.stack = StackOptions::From(params, owner);
  options.num_tokens = params.Positive(prefix + "num_tokens");
  options.emb_dim = params.Positive(prefix + "emb_dim", options.stack.channels());
  if (options.emb_dim % 2 != 0) {
    params.Fail(prefix + (params.Has(prefix + "emb_dim") ? "emb_dim" : "channels"),
                "an even number: half of a position's features are sines, half cosines");
  }
  options.return_emb = owner == Owner::kEncoder;
  if (owner == Owner::kLanguageModel) options.return_emb = params.Flag("return_emb", false);
  params.Ignore(prefix + "dropout_tokens");
  return options;
}

}  // namespace linserve::linformer_pytorch
