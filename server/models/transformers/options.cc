#include "models/transformers/options.h"

#include <array>
#include <string>

#include "models/config/activation_param.h"

namespace linserve::transformers {
namespace {

// A configuration may be given with what only training or generation reads.
constexpr std::array kOfTraining = {"hidden_dropout_prob",
                                    "attention_probs_dropout_prob",
                                    "dropout",
                                    "attention_dropout",
                                    "embedding_dropout",
                                    "mlp_dropout",
                                    "attn_pdrop",
                                    "resid_pdrop",
                                    "embd_pdrop",
                                    "initializer_range",
                                    "initializer_cutoff_factor",
                                    "pad_token_id",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "cls_token_id",
                                    "sep_token_id",
                                    "tie_word_embeddings",
                                    "add_cross_attention",
                                    "use_cache",
                                    "sinusoidal_pos_embds"};

void RefuseIf(Params& params, const char* key) {
  if (params.Flag(key, false)) params.Fail(key, "false: only encoders are computed");
}

void SetSizes(Options& options, Params& params, const char* dim, const char* heads,
              const char* inner, int64_t usual_inner = 3072) {
  options.dim = params.Positive(dim, 768);
  options.heads = params.Heads(heads, 12);
  options.inner = params.Positive(inner, usual_inner);
  if (options.dim % options.heads != 0) {
    params.Fail(dim, "a multiple of " + std::string(heads) + " = " + std::to_string(options.heads));
  }
}

Options Bert(Family family, Params& params, int64_t usual_vocabulary) {
  Options options{.family = family};
  options.vocabulary = params.Positive("vocab_size", usual_vocabulary);
  SetSizes(options, params, "hidden_size", "num_attention_heads", "intermediate_size");
  options.layers.resize(static_cast<size_t>(params.Depth("num_hidden_layers", 12)));
  options.activation = ActivationParam(params, "hidden_act");
  options.eps = params.Number("layer_norm_eps", 1e-12, 0, 1);
  options.positions = params.Positive("max_position_embeddings", 512);
  params.Choice("position_embedding_type", "absolute", {"absolute"});
  RefuseIf(params, "is_decoder");
  RefuseIf(params, "add_cross_attention");
  options.types = family == Family::kMpnet ? 0 : params.Positive("type_vocab_size", 2);
  if (family == Family::kRoberta) options.padding = params.NotNegative("pad_token_id", 1);
  options.pooler = params.Flag("add_pooling_layer", true);
  return options;
}

Options Mpnet(Params& params) {
  Options options = Bert(Family::kMpnet, params, 30527);
  options.padding = 1;  // whatever pad_token_id says
  options.distances = true;
  // The model counts 32 buckets, whatever number its table has.
  if (params.Positive("relative_attention_num_buckets", 32) != 32) {
    params.Fail("relative_attention_num_buckets", "32");
  }
  return options;
}

Options DistilBert(Params& params) {
  Options options{.family = Family::kDistilBert};
  options.vocabulary = params.Positive("vocab_size", 30522);
  SetSizes(options, params, "dim", "n_heads", "hidden_dim");
  options.layers.resize(static_cast<size_t>(params.Depth("n_layers", 6)));
  options.activation = ActivationParam(params, "activation");
  options.positions = params.Positive("max_position_embeddings", 512);
  return options;
}

constexpr double kLargestTheta = 1e12;

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
  RefuseScaling(params.Object("rope_scaling"));
  Params* by_type = params.Object("rope_parameters");
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

void CheckHalves(const Options& options, Params& params, const char* dim = "hidden_size") {
  if (options.dim_head() % 2 == 0) return;
  params.Fail(dim, "heads of an even width, whose halves rotary positions turn");
}

Options ModernBert(Params& params) {
  Options options{.family = Family::kModernBert};
  options.vocabulary = params.Positive("vocab_size", 50368);
  SetSizes(options, params, "hidden_size", "num_attention_heads", "intermediate_size", 1152);
  CheckHalves(options, params);
  options.layers = ModernBertLayers(params);
  options.activation = ActivationParam(params, "hidden_activation");
  options.eps = params.Number("norm_eps", 1e-5, 0, 1);
  options.longest = params.Positive("max_position_embeddings", 8192);
  options.gated = true;
  options.pre_norm = true;
  options.attention_bias = params.Flag("attention_bias", false);
  options.inner_bias = params.Flag("mlp_bias", false);
  options.outer_bias = options.inner_bias;
  options.norm_bias = params.Flag("norm_bias", false);
  return options;
}

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

// Reads what NomicBert and GTE have in common. `usual` holds what is not said otherwise.
Options Rotary(const Options& usual, double usual_theta, const RotaryKeys& keys, Params& params) {
  Options options = usual;
  options.vocabulary = params.Positive("vocab_size", usual.vocabulary);
  SetSizes(options, params, keys.dim, keys.heads, keys.inner);
  CheckHalves(options, params, keys.dim);
  RefuseScaling(params.Object("rope_scaling"));
  const double theta = params.Number(keys.theta, usual_theta, 1, kLargestTheta);
  const LayerKind kind{.theta = ThetaOf(params.Object("rope_parameters"), theta)};
  options.layers.assign(static_cast<size_t>(params.Depth(keys.depth, 12)), kind);
  options.longest = params.Positive(keys.longest, usual.longest);
  options.types = params.NotNegative("type_vocab_size", usual.types);
  options.eps = params.Number(keys.eps, 1e-12, 0, 1);
  options.gated = true;
  options.inner_bias = false;
  return options;
}

Options NomicBert(Params& params) {
  const Options usual{.family = Family::kNomicBert,
                      .vocabulary = 30528,
                      .longest = 2048,
                      .types = 2,
                      .attention_bias = false,
                      .outer_bias = false};
  constexpr double kTheta = 1000;
  if (!params.Has("n_embd")) {
    Options options = Rotary(usual, kTheta, {}, params);
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
                           params);
  const auto round_up = [](int64_t& size, int64_t multiple) {
    size = (size + multiple - 1) / multiple * multiple;
  };
  round_up(options.inner, 256);
  round_up(options.vocabulary, params.Positive("pad_vocab_size_multiple", 1));
  const std::string gate = params.Choice("activation_function", "swiglu", {"swiglu", "geglu"});
  options.activation = gate == "swiglu" ? Activation::kSilu : Activation::kGelu;
  for (const char* key : {"prenorm", "parallel_block", "rotary_emb_interleaved", "use_rms_norm",
                          "causal", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"}) {
    if (params.Flag(key, false)) params.Fail(key, "false");
  }
  if (params.Number("rotary_emb_fraction", 1, 0, 1) != 1) params.Fail("rotary_emb_fraction", "1");
  params.RequireNone("rotary_scaling_factor", "positions are not scaled");
  return options;
}

Options Gte(Params& params) {
  const Options usual{.family = Family::kGte, .vocabulary = 250048, .longest = 8192, .types = 1};
  Options options = Rotary(usual, /*usual_theta=*/160000, {}, params);
  options.activation = ActivationParam(params, "hidden_act");
  if (params.Flag("logn_attention_scale", false)) params.Fail("logn_attention_scale", "false");
  return options;
}

Landmarks LandmarksOf(Params& params, int64_t longest) {
  Landmarks landmarks;
  const int64_t count = params.Positive("num_landmarks", 64);
  const int64_t length = params.Positive("segment_means_seq_len", 64);
  // The package then computes softmax attention, whatever the length.
  if (count != length) {
    landmarks.count = count;
    landmarks.segment = length / count;
    if (length < count || landmarks.length() > longest) {
      params.Fail("segment_means_seq_len",
                  "from num_landmarks = " + std::to_string(count) +
                      " to max_position_embeddings = " + std::to_string(longest));
    }
  }
  landmarks.by_head = params.Flag("inv_coeff_init_option", false);
  landmarks.kernel = params.Positive("conv_kernel_size", 65);
  if (landmarks.kernel % 2 == 0) {
    params.Fail("conv_kernel_size", "an odd number, with which a row has one result");
  }
  if (params.IsNone("conv_kernel_size")) landmarks.kernel = 0;
  return landmarks;
}

Options Nystromformer(Params& params) {
  Options options{.family = Family::kNystromformer};
  options.vocabulary = params.Positive("vocab_size", 30000);
  SetSizes(options, params, "hidden_size", "num_attention_heads", "intermediate_size");
  options.layers.resize(static_cast<size_t>(params.Depth("num_hidden_layers", 12)));
  options.activation = ActivationParam(params, "hidden_act", "gelu_new");
  options.eps = params.Number("layer_norm_eps", 1e-5, 0, 1);
  const int64_t longest = params.Positive("max_position_embeddings", 510);
  options.unused_positions = 2;
  options.positions = longest + options.unused_positions;
  options.types = params.Positive("type_vocab_size", 2);
  options.landmarks = LandmarksOf(params, longest);
  options.pad_token = params.NotNegative("pad_token_id", 1);
  if (options.landmarks.count > 0 && options.pad_token >= options.vocabulary) {
    params.Fail("pad_token_id", "less than vocab_size = " + std::to_string(options.vocabulary));
  }
  return options;
}

Options OfFamily(Family family, Params& params) {
  switch (family) {
    case Family::kMpnet:
      return Mpnet(params);
    case Family::kDistilBert:
      return DistilBert(params);
    case Family::kModernBert:
      return ModernBert(params);
    case Family::kNystromformer:
      return Nystromformer(params);
    case Family::kNomicBert:
      return NomicBert(params);
    case Family::kGte:
      return Gte(params);
    case Family::kRoberta:
      return Bert(family, params, 50265);
    case Family::kBert:
      break;
  }
  return Bert(family, params, 30522);
}

}  // namespace

Options Options::From(Family family, Params& params) {
  Options options = OfFamily(family, params);
  if (options.positions > 0) options.longest = options.positions - options.first_position();
  if (options.landmarks.count > 0) options.longest = options.landmarks.length();
  if (options.longest < 1) {
    params.Fail("max_position_embeddings",
                "more than pad_token_id + 1 = " + std::to_string(options.first_position()));
  }
  for (const char* key : kOfTraining) params.Ignore(key);
  return options;
}

bool Options::Recordable() const {
  const bool windows = std::any_of(layers.begin(), layers.end(),
                                   [](const LayerKind& layer) { return layer.window >= 0; });
  return !windows && !distances && landmarks.count == 0 && landmarks.kernel == 0 &&
         dim_head() % 8 == 0;
}

}  // namespace linserve::transformers
