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
    "attention_dropout", "resid_pdrop",  "embd_pdrop",          "initializer_range",
    "pretraining_tp",    "bos_token_id", "eos_token_id",        "mask_token_id",
    "pad_token_id",      "use_cache",    "tie_word_embeddings", "final_logit_softcapping",
    "tie_embedding"};

// Holds what a family's configuration is where it is silent.
struct Usual {
  int64_t vocabulary, dim, inner, depth, heads;
  int64_t key_heads;  // 0: as many as queries have
  int64_t dim_head;   // 0: what is the heads' share of the width
  int64_t longest;
  double eps = 1e-6;
  double theta = 10000;  // of rotary positions
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
    case Family::kPhi3:
      return {32064, 3072, 8192, 32, 32, 0, 0, 4096, 1e-5};
    case Family::kSmolLm3:
      return {128256, 2048, 11008, 36, 16, 4, 0, 32768, 1e-6, 2e6};
    case Family::kOlmo2:
      return {50304, 4096, 11008, 32, 32, 0, 0, 2048, 1e-5};
    case Family::kMinistral:
      return {32000, 4096, 14336, 32, 32, 8, 0, 131072};
    case Family::kLfm2:
      return {65536, 2560, 12288, 32, 32, 8, 0, 128000, 1e-5, 1e6};
    case Family::kLlama:
    case Family::kGranite:
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

// Reads how wide LFM2's feed-forward is.
int64_t InnerOfLfm2(Params& params, int64_t usual) {
  constexpr double kLargestMultiplier = 1024;
  constexpr int64_t kWidest = int64_t{1} << 31;
  constexpr int64_t kUsualMultiple = 256;
  const int64_t said = params.Positive("intermediate_size", usual);
  const int64_t width = params.Positive("block_ff_dim", said);
  const bool without = params.IsNone("block_ffn_dim_multiplier");
  const double multiplier =
      params.Number("block_ffn_dim_multiplier", 1, 1 / kLargestMultiplier, kLargestMultiplier);
  const int64_t multiple = params.Positive("block_multiple_of", kUsualMultiple);
  if (!params.Flag("block_auto_adjust_ff_dim", true)) return width;
  const int64_t share = 2 * width / 3;
  const auto scaled = static_cast<int64_t>(multiplier * static_cast<double>(share));
  const int64_t adjusted = without ? share : (scaled + multiple - 1) / multiple * multiple;
  if (adjusted < 1 || adjusted > kWidest) {
    params.Fail("intermediate_size", "a width that is from 1 to " + std::to_string(kWidest) +
                                         " as block_auto_adjust_ff_dim changes it");
  }
  return adjusted;
}

Options Common(Family family, Params& params) {
  const Usual usual = UsualOf(family);
  Options options;
  options.vocabulary = VocabularyOf(family, params);
  options.dim = params.Positive("hidden_size", usual.dim);
  options.heads = params.Heads("num_attention_heads", usual.heads);
  options.inner = family == Family::kLfm2 ? InnerOfLfm2(params, usual.inner)
                                          : params.Positive("intermediate_size", usual.inner);
  options.key_heads = KeyHeadsOf(params, usual, options.heads);
  options.dim_head = DimHeadOf(params, usual, options);
  options.longest = LongestWithoutTable(params, "max_position_embeddings", usual.longest);
  options.eps =
      params.Number(family == Family::kLfm2 ? "norm_eps" : "rms_norm_eps", usual.eps, 0, 1);
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

// Reads what Granite multiplies by.
void ReadFactors(Params& params, Options& options) {
  options.words_factor = params.Number("embedding_multiplier", 1, 0, kLargestScalar);
  options.added_factor = params.Number("residual_multiplier", 1, 0, kLargestScalar);
  options.scale = params.Number("attention_multiplier", 1, 1 / kLargestScalar, kLargestScalar);
  params.Ignore("logits_scaling");  // where there are none
}

// Reads what LFM2 has besides.
void ReadConvolutions(Params& params, Options& options) {
  constexpr int64_t kUsualKernel = 3;
  constexpr int64_t kLargestKernel = 1 << 12;
  options.kernel = params.Positive("conv_L_cache", kUsualKernel);
  if (options.kernel > kLargestKernel) {
    params.Fail("conv_L_cache", "at most " + std::to_string(kLargestKernel) + " rows");
  }
  options.kernel_bias = params.Flag("conv_bias", false);
  options.names = {.attention_norm = "operator_norm",
                   .inner_norm = "ffn_norm",
                   .last_norm = "embedding_norm",
                   .query_norm = "q_layernorm",
                   .key_norm = "k_layernorm",
                   .out = "out_proj",
                   .feed_forward = "feed_forward",
                   .gate = "w1",
                   .inner = "w3",
                   .outer = "w2"};
}

void ReadRotary(Family family, Params& params, Options& options) {
  const Usual of_family = UsualOf(family);
  const RotaryUsual usual{.theta = of_family.theta,
                          .longest = params.Positive("max_position_embeddings", of_family.longest),
                          .of_phi3 = family == Family::kPhi3};
  options.rotary = family == Family::kGemma3
                       ? GemmaRotary(params, usual)
                       : std::vector<RotaryFrequencies>{RotaryParams(params, usual)};
  const int64_t turned = options.turned();
  if (turned < 2 || turned % 2 != 0) {
    params.Fail("partial_rotary_factor",
                "a share of head_dim = " + std::to_string(options.dim_head) +
                    " that is even: its halves are turned");
  }
  for (const RotaryFrequencies& rotary : options.rotary) {
    if (rotary.scaling != RotaryFrequencies::Scaling::kLong) continue;
    if (std::ssize(rotary.factors) != turned / 2) {
      params.Fail("rope_parameters",
                  "as many of short_factor as pairs are turned, " + std::to_string(turned / 2));
    }
    options.longest = std::min(options.longest, static_cast<int64_t>(rotary.trained));
  }
}

void ReadBiases(Family family, Params& params, Options& options) {
  options.query_bias = family == Family::kQwen2;
  const bool never = family == Family::kQwen2 || family == Family::kMistral ||
                     family == Family::kMinistral || family == Family::kPhi3 ||
                     family == Family::kLfm2;
  if (!never) {
    options.query_bias = params.Flag("attention_bias", false);
    options.out_bias = options.query_bias;
  }
  if (family == Family::kLlama || family == Family::kEuroBert || family == Family::kGranite ||
      family == Family::kSmolLm3) {
    options.inner_bias = params.Flag("mlp_bias", false);
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

int64_t Options::turned() const {
  return static_cast<int64_t>(static_cast<double>(dim_head) * rotary[0].share);
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
  options.scale = 1 / std::sqrt(static_cast<double>(options.dim_head));
  if (IsGemma(family)) {
    ReadGemma(family, params, options);
  } else if (family == Family::kLfm2) {
    ReadConvolutions(params, options);
  } else {
    options.activation = ActivationParam(params, "hidden_act", "silu");
  }
  if (family == Family::kGranite) ReadFactors(params, options);
  ReadRotary(family, params, options);
  if (family == Family::kQwen3 || family == Family::kGemma3 || family == Family::kLfm2) {
    options.head_norms = HeadNorms::kEach;
  }
  if (family == Family::kOlmo2) {
    options.head_norms = HeadNorms::kAll;
    options.norms_before = false;
    options.norms_behind = true;
  }
  options.joined = family == Family::kPhi3;
  ReadBiases(family, params, options);
  SetLayerKinds(family, params, options);
  for (const char* key : kOfTraining) params.Ignore(key);
  return options;
}

}  // namespace linserve::llama
