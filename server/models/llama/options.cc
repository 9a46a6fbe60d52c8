#include "models/llama/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "models/config/activation_param.h"
#include "models/config/hugging_face_config.h"
#include "models/llama/layer_kinds.h"
#include "models/transformers/positions/rotary_params.h"

namespace linserve::llama {
namespace {

// A configuration may be given with what only training or generation reads.
constexpr std::array kOfTraining = {
    "attention_dropout",   "initializer_range",      "pretraining_tp", "bos_token_id",
    "eos_token_id",        "mask_token_id",          "pad_token_id",   "use_cache",
    "tie_word_embeddings", "final_logit_softcapping"};

// Holds what a family's configuration is where it is silent.
struct Usual {
  int64_t vocabulary, dim, inner, depth, heads;
  int64_t key_heads;  // 0: as many as queries have
  int64_t dim_head;   // 0: what is the heads' share of the width
  int64_t longest;
  double eps = 1e-6;
};

constexpr Usual UsualOf(Family family) {
  switch (family) {
    case Family::kMistral:
      return {32000, 4096, 14336, 32, 32, 8, 0, 131072};
    case Family::kQwen2:
      return {151936, 4096, 22016, 32, 32, 32, 0, 32768};
    case Family::kQwen3:
      return {151936, 4096, 22016, 32, 32, 32, 128, 32768};
    case Family::kGemma:
      return {256000, 3072, 24576, 28, 16, 16, 256, 8192};
    case Family::kGemma2:
      return {256000, 2304, 9216, 26, 8, 4, 256, 8192};
    case Family::kGemma3:
      return {262208, 2304, 9216, 26, 8, 4, 256, 131072};
    case Family::kEuroBert:
      return {128256, 768, 3072, 12, 12, 0, 0, 8192, 1e-5};
    case Family::kLlama:
      break;
  }
  return {32000, 4096, 11008, 32, 32, 0, 0, 2048};
}

int64_t KeyHeadsOf(Params& params, const Usual& usual, int64_t heads) {
  constexpr const char* kKey = "num_key_value_heads";
  const bool as_queries = params.IsNone(kKey) || usual.key_heads == 0;
  const int64_t key_heads = params.Heads(kKey, as_queries ? heads : usual.key_heads);
  if (heads % key_heads != 0) {
    params.Fail(kKey, "a divisor of num_attention_heads = " + std::to_string(heads));
  }
  return key_heads;
}

int64_t DimHeadOf(Params& params, const Usual& usual, const Options& options) {
  constexpr const char* kKey = "head_dim";
  constexpr int64_t kWidest = 1 << 16;
  const bool said = params.Has(kKey) || (usual.dim_head > 0 && !params.IsNone(kKey));
  const int64_t width = said ? params.Positive(kKey, usual.dim_head) : options.dim / options.heads;
  if (!said && options.dim % options.heads != 0) {
    params.Fail("hidden_size", "a multiple of num_attention_heads = " +
                                   std::to_string(options.heads) + " where there is no head_dim");
  }
  if (width < 1 || width % 2 != 0 || width > kWidest) {
    params.Fail(said ? kKey : "hidden_size", "heads of an even width up to " +
                                                 std::to_string(kWidest) +
                                                 ", whose halves rotary positions turn");
  }
  params.Ignore(kKey);
  return width;
}

Options Common(Family family, Params& params) {
  const Usual usual = UsualOf(family);
  Options options;
  options.vocabulary = VocabularyOf(family, params);
  options.dim = params.Positive("hidden_size", usual.dim);
  options.heads = params.Heads("num_attention_heads", usual.heads);
  options.inner = params.Positive("intermediate_size", usual.inner);
  options.key_heads = KeyHeadsOf(params, usual, options.heads);
  options.dim_head = DimHeadOf(params, usual, options);
  options.longest = LongestWithoutTable(params, "max_position_embeddings", usual.longest);
  options.eps = params.Number("rms_norm_eps", usual.eps, 0, 1);
  options.layers.resize(static_cast<size_t>(params.Depth("num_hidden_layers", usual.depth)));
  return options;
}

constexpr double kLargestScalar = 1e9;

// Reads what Gemma's models have besides.
void ReadGemma(Family family, Params& params, Options& options) {
  options.norms_from_one = true;
  options.scales_words = true;
  const char* key = family == Family::kGemma ? "hidden_act" : "hidden_activation";
  options.activation = ActivationParam(params, key, "gelu_pytorch_tanh");
  if (family == Family::kGemma) {
    // The package takes the one for the other, as the first files name the wrong one.
    if (params.Text(key, "") == "gelu") options.activation = Activation::kTanhGelu;
    return;
  }
  options.norms_behind = true;
  constexpr double kUsual = 256;
  const double scalar =
      params.Number("query_pre_attn_scalar", kUsual, 1 / kLargestScalar, kLargestScalar);
  options.scale = 1 / std::sqrt(scalar);
  constexpr const char* kCap = "attn_logit_softcapping";
  if (family == Family::kGemma3) {
    // The package's class computes without it, and what was trained with it needs it.
    params.RequireNone(kCap, "scores are not capped");
  } else {
    constexpr double kUsualCap = 50;
    options.score_cap = CapParam(params, kCap, kUsualCap);
  }
}

}  // namespace

int64_t VocabularyOf(Family family, Params& params) {
  return params.Positive("vocab_size", UsualOf(family).vocabulary);
}

double CapParam(Params& params, const char* key, double fallback) {
  const double cap = params.Number(key, 1, 1 / kLargestScalar, kLargestScalar);
  if (params.Has(key)) return cap;
  return params.IsNone(key) ? 0 : fallback;
}

bool Options::causal() const {
  return std::all_of(layers.begin(), layers.end(),
                     [](const LayerKind& layer) { return layer.after == 0; });
}

bool Options::has_windows() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerKind& layer) { return layer.before >= 0; });
}

Options Options::From(Family family, Params& params) {
  Options options = Common(family, params);
  const RotaryUsual usual{.longest =
                              params.Positive("max_position_embeddings", UsualOf(family).longest)};
  options.scale = 1 / std::sqrt(static_cast<double>(options.dim_head));
  if (IsGemma(family)) {
    ReadGemma(family, params, options);
  } else {
    options.activation = ActivationParam(params, "hidden_act", "silu");
  }
  options.rotary = family == Family::kGemma3
                       ? GemmaRotary(params, usual)
                       : std::vector<RotaryFrequencies>{RotaryParams(params, usual)};
  options.head_norms = family == Family::kQwen3 || family == Family::kGemma3;
  options.query_bias = family == Family::kQwen2;
  if (family != Family::kQwen2 && family != Family::kMistral) {
    options.query_bias = params.Flag("attention_bias", false);
    options.out_bias = options.query_bias;
  }
  if (family == Family::kLlama || family == Family::kEuroBert) {
    options.inner_bias = params.Flag("mlp_bias", false);
  }
  SetLayerKinds(family, params, options);
  for (const char* key : kOfTraining) params.Ignore(key);
  return options;
}

}  // namespace linserve::llama
