#include "models/transformers/options/rotary_options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/config/activation_param.h"
#include "models/config/hugging_face_config.h"
#include "models/transformers/options/bert_options.h"
#include "models/transformers/positions/rotary_params.h"

namespace linserve::transformers {
namespace {

// Refuses positions that are scaled. `rope` is nullptr where nothing is said of them.
void RefuseScaling(Params* rope) {
  if (rope == nullptr) return;
  for (const char* key : {"rope_type", "type"}) rope->Choice(key, "default", {"default"});
}

// Reads the base of rotary positions; `rope` is nullptr where nothing is said of them.
double ThetaOf(Params* rope, double fallback) {
  RefuseScaling(rope);
  if (rope == nullptr) return fallback;
  return rope->Number("rope_theta", fallback, 1, kLargestTheta);
}

// Reads that of layers of a type, which older configurations say by `key`. `by_type` is nullptr
// where nothing is said by type.
double Theta(Params& params, const char* key, Params* by_type, const char* type, double fallback) {
  fallback = params.Number(key, fallback, 1, kLargestTheta);
  return ThetaOf(by_type != nullptr ? by_type->Object(type) : nullptr, fallback);
}

std::vector<LayerKind> ModernBertLayers(Params& params) {
  const auto depth = static_cast<size_t>(params.Depth("num_hidden_layers", 22));
  Params* by_type = params.Object("rope_parameters");
  for (Params* rope : {params.Object("rope_scaling"), by_type}) {
    RefuseScaling(rope);
    if (rope != nullptr) rope->RequireNone("rope_theta", "it is said for each type of layers");
  }
  const LayerKind global{.theta =
                             Theta(params, "global_rope_theta", by_type, "full_attention", 160000)};
  const LayerKind local{
      .window = params.NotNegative("local_attention", 128) / 2,
      .theta = Theta(params, "local_rope_theta", by_type, "sliding_attention", 10000)};
  std::vector<LayerKind> layers;
  if (params.Has("layer_types")) {
    for (const std::string& type :
         params.Choices("layer_types", {"full_attention", "sliding_attention"})) {
      layers.push_back(type == "full_attention" ? global : local);
    }
    if (layers.size() != depth) {
      params.Fail("layer_types", "as many as num_hidden_layers = " + std::to_string(depth));
    }
    return layers;
  }
  const auto every = static_cast<size_t>(params.Positive("global_attn_every_n_layers", 3));
  for (size_t i = 0; i < depth; ++i) layers.push_back(i % every == 0 ? global : local);
  return layers;
}

}  // namespace

void CheckHalves(const Options& options, Params& params, const char* dim) {
  if (options.dim_head() % 2 == 0) return;
  params.Fail(dim, "heads of an even width, whose halves rotary positions turn");
}

Options ModernBert(Params& params) {
  if (params.Flag("is_causal", false))
    params.Fail("is_causal", "false: only encoders are computed");
  if (params.Has("sliding_window")) {
    params.Fail("sliding_window", "none: its double goes into local_attention");
  }
  Options options{.family = Family::kModernBert};
  options.vocabulary = params.Positive("vocab_size", 50368);
  SetSizes(options, params, "hidden_size", "num_attention_heads", "intermediate_size", 1152);
  CheckHalves(options, params);
  options.layers = ModernBertLayers(params);
  options.activation = ActivationParam(params, "hidden_activation");
  options.eps = params.Number("norm_eps", 1e-5, 0, 1);
  options.longest = LongestWithoutTable(params, "max_position_embeddings", 8192);
  options.gated = true;
  options.pre_norm = true;
  options.first_unnormed = true;
  options.attention_bias = params.Flag("attention_bias", false);
  options.inner_bias = params.Flag("mlp_bias", false);
  options.outer_bias = options.inner_bias;
  options.norm_bias = params.Flag("norm_bias", false);
  return options;
}

namespace {

// Says by which keys a configuration of BERT with rotary positions and a gate says its sizes.
struct RotaryKeys {
  const char* dim = "hidden_size";
  const char* heads = "num_attention_heads";
  const char* inner = "intermediate_size";
  const char* depth = "num_hidden_layers";
  const char* eps = "layer_norm_eps";
  const char* theta = "rope_theta";
  const char* longest = "max_position_embeddings";
};

// Returns what says of the positions, by its name or an older one; nullptr: nothing does.
Params* RopeOf(Params& params) {
  Params* scaling = params.Object("rope_scaling");
  RefuseScaling(scaling);
  Params* rope = params.Object("rope_parameters");
  return rope != nullptr ? rope : scaling;
}

// Reads what NomicBert and GTE have in common. `usual` holds what is not said otherwise.
Options Rotary(const Options& usual, double usual_theta, const RotaryKeys& keys, Params* rope,
               Params& params) {
  Options options = usual;
  options.vocabulary = params.Positive("vocab_size", usual.vocabulary);
  SetSizes(options, params, keys.dim, keys.heads, keys.inner);
  CheckHalves(options, params, keys.dim);
  const double theta = params.Number(keys.theta, usual_theta, 1, kLargestTheta);
  const LayerKind kind{.theta = ThetaOf(rope, theta)};
  options.layers.assign(static_cast<size_t>(params.Depth(keys.depth, 12)), kind);
  options.longest = LongestWithoutTable(params, keys.longest, usual.longest);
  options.types = params.NotNegative("type_vocab_size", usual.types);
  options.eps = params.Number(keys.eps, 1e-12, 0, 1);
  options.gated = true;
  options.inner_bias = false;
  return options;
}

// Reads which products of a published NomicBert have biases: with a gate none has.
void ReadBiases(Params& params, Options& options) {
  const auto read = [&](const char* key) {
    const bool biased = params.Flag(key, false);
    if (biased && options.gated) params.Fail(key, "false where the feed-forward has a gate");
    return biased;
  };
  options.attention_bias = read("qkv_proj_bias");
  options.inner_bias = read("mlp_fc1_bias");
  options.outer_bias = read("mlp_fc2_bias");
}

// Reads which layers of a published NomicBert have experts, as its authors' code has them
// (github.com/nomic-ai/contrastors).
void ReadExperts(Params& params, Options& options) {
  constexpr int64_t kMostExperts = 1024;
  const int64_t count = params.NotNegative("num_experts", 0);
  const auto every = static_cast<size_t>(params.NotNegative("moe_every_n_layers", 0));
  if (count > kMostExperts) params.Fail("num_experts", "1024 at most");
  if (params.NotNegative("num_shared_experts", 0) > 0) params.Fail("num_shared_experts", "0");
  for (const char* key : {"expert_choice_router", "moe_normalize_expert_weights"}) {
    if (params.Flag(key, false)) params.Fail(key, "false");
  }
  params.Choice("moe_impl", "megablocks", {"megablocks"});
  if (params.Number("ffn_div", 1, 0, count + 1.0) != 1) params.Fail("ffn_div", "1");
  const int64_t chosen = params.Positive("moe_top_k", 1);
  for (const char* key : {"router_aux_loss_coef", "moe_resid_pdrop"}) params.Ignore(key);
  if (count == 0) return;
  if (options.gated) params.Fail("activation_function", "gelu, for experts have no gate");
  if (chosen > count) {
    params.Fail("moe_top_k", "at most num_experts = " + std::to_string(count));
  }
  options.experts = {.count = count, .chosen = chosen};
  for (size_t i = 0; every > 0 && i < options.layers.size(); ++i) {
    options.layers[i].experts = i % every == 1;
  }
}

}  // namespace

Options NomicBert(Params& params) {
  const Options usual{.family = Family::kNomicBert,
                      .vocabulary = 30528,
                      .longest = 2048,
                      .types = 2,
                      .attention_bias = false,
                      .outer_bias = false};
  constexpr double kTheta = 1000;
  Params* rope = RopeOf(params);
  if (!params.Has("n_embd")) {
    Options options = Rotary(usual, kTheta, {}, rope, params);
    options.activation = ActivationParam(params, "hidden_act", "silu");
    return options;
  }
  // What was published before transformers had the class speaks as GPT-2 does.
  Options options = Rotary(usual, kTheta,
                           {.dim = "n_embd",
                            .heads = "n_head",
                            .inner = "n_inner",
                            .depth = "n_layer",
                            .eps = "layer_norm_epsilon",
                            .theta = "rotary_emb_base",
                            .longest = "n_positions"},
                           rope, params);
  const auto round_up = [](int64_t& size, int64_t multiple) {
    size = (size + multiple - 1) / multiple * multiple;
  };
  round_up(options.vocabulary, params.Positive("pad_vocab_size_multiple", 1));
  const std::string function =
      params.Choice("activation_function", "swiglu", {"swiglu", "geglu", "gelu"});
  options.activation = function == "swiglu" ? Activation::kSilu : Activation::kGelu;
  options.gated = function != "gelu";
  if (options.gated) round_up(options.inner, 256);
  for (const char* key :
       {"prenorm", "parallel_block", "rotary_emb_interleaved", "use_rms_norm", "causal"}) {
    if (params.Flag(key, false)) params.Fail(key, "false");
  }
  ReadBiases(params, options);
  ReadExperts(params, options);
  if (params.Number("rotary_emb_fraction", 1, 0, 1) != 1) params.Fail("rotary_emb_fraction", "1");
  params.RequireNone("rotary_scaling_factor", "positions are not scaled");
  return options;
}

namespace {

// Scales positions as the authors' NTKScalingRotaryEmbedding does (https://kexue.fm/archives/9706).
void ScaleByNtk(Params& scaling, Options& options) {
  constexpr double kMost = 1e6;
  for (const char* key : {"type", "rope_type"}) scaling.Choice(key, "ntk", {"ntk"});
  scaling.Ignore("rope_theta");  // transformers copies it there
  scaling.RequireNone("mixed_b", "frequencies are scaled alike");
  const double factor = scaling.Number("factor", 1, 0, kMost);
  if (factor <= 1) return;
  for (LayerKind& layer : options.layers) layer.theta *= factor;
  options.stretch = std::pow(factor, 2 / static_cast<double>(options.dim_head()));
}

// Reads GTE as its authors publish it (Alibaba-NLP/new-impl), before transformers had the class.
Options PublishedGte(Params& params) {
  const Options usual{.family = Family::kGte, .vocabulary = 30528, .longest = 2048, .types = 1};
  Options options =
      Rotary(usual, /*usual_theta=*/10000, {}, params.Object("rope_parameters"), params);
  options.activation = ActivationParam(params, "hidden_act");
  params.Choice("position_embedding_type", "rope", {"rope"});
  params.Choice("layer_norm_type", "layer_norm", {"layer_norm"});
  for (const char* key : {"pack_qkv", "unpad_inputs", "use_memory_efficient_attention",
                          "logn_attention_clip1", "classifier_dropout"}) {
    params.Ignore(key);
  }
  if (Params* scaling = params.Object("rope_scaling")) ScaleByNtk(*scaling, options);
  return options;
}

}  // namespace

Options Gte(Params& params) {
  if (params.Flag("logn_attention_scale", false)) params.Fail("logn_attention_scale", "false");
  if (params.Text("model_type", "gte") == "new") return PublishedGte(params);
  const Options usual{.family = Family::kGte, .vocabulary = 250048, .longest = 8192, .types = 1};
  Options options = Rotary(usual, /*usual_theta=*/160000, {}, RopeOf(params), params);
  options.activation = ActivationParam(params, "hidden_act");
  return options;
}

Options JinaV3(Params& params) {
  Options options = BertSizes(Family::kJinaV3, params,
                              {.vocabulary = 250002,
                               .dim = 1024,
                               .heads = 16,
                               .inner = 4096,
                               .depth = 24,
                               .types = 1,
                               .eps = 1e-5});
  CheckHalves(options, params);
  if (params.Positive("head_dim", options.dim_head()) != options.dim_head()) {
    params.Fail("head_dim",
                "hidden_size / num_attention_heads = " + std::to_string(options.dim_head()));
  }
  const double theta = params.Number("rope_theta", 20000, 1, kLargestTheta);
  const LayerKind kind{.theta = ThetaOf(RopeOf(params), theta)};
  options.layers.assign(options.layers.size(), kind);
  options.longest = LongestWithoutTable(params, "max_position_embeddings", 8194);
  return options;
}

}  // namespace linserve::transformers
