#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/positions/rotary_frequencies.h"
#include "models/config/params.h"
#include "models/network/layers.h"

namespace linserve::llama {

enum class Family : uint8_t {
  kLlama,
  kMistral,
  kQwen2,
  kQwen3,
  kGemma,
  kGemma2,
  kGemma3,
  kEuroBert,
  kPhi3,
  kGranite,
  kSmolLm3,
  kOlmo2,
  kMinistral,
  kLfm2,
};

// Says whether it is one of Gemma's.
constexpr bool IsGemma(Family family) {
  return family == Family::kGemma || family == Family::kGemma2 || family == Family::kGemma3;
}

// Says what the attention of one layer sees, and how its queries and keys are turned.
struct LayerKind {
  int64_t before = -1;     // rows before its own that a query sees; -1: all
  int64_t after = 0;       // and behind it
  size_t rotary = 0;       // place in Options::rotary
  bool turned = true;      // by positions
  bool convolves = false;  // it has a short convolution in the place of attention
};

// Names what families have different names for.
struct Names {
  const char* attention_norm = "input_layernorm";
  const char* inner_norm = "post_attention_layernorm";
  const char* last_norm = "norm";
  const char* query_norm = "q_norm";
  const char* key_norm = "k_norm";
  const char* out = "o_proj";
  const char* feed_forward = "mlp";
  const char* gate = "gate_proj";
  const char* inner = "up_proj";
  const char* outer = "down_proj";
};

// Says which norms queries and keys have.
enum class HeadNorms : uint8_t {
  kNone,
  kEach,  // of each head
  kAll,   // of all heads together
};

// Holds what a configuration of any of these models says, in the terms of Llama.
struct Options {
  int64_t vocabulary = 0;
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;  // of keys and values
  int64_t dim_head = 0;
  int64_t inner = 0;    // of the feed-forward
  int64_t longest = 0;  // sequence
  double eps = 1e-6;    // of the norms
  Activation activation = Activation::kSilu;
  bool query_bias = false;  // of queries, keys and values
  bool out_bias = false;    // of what attention adds
  bool inner_bias = false;  // of the feed-forward
  bool joined = false;      // files have queries, keys and values in one, and so gate and inner
  HeadNorms head_norms = HeadNorms::kNone;
  bool norms_before = true;     // attention and feed-forward have norms before them
  bool norms_behind = false;    // and behind them
  bool norms_from_one = false;  // norms' weights lack one
  bool scales_words = false;    // rows of tokens are multiplied by the root of `dim`
  double words_factor = 1;      // they are multiplied by it
  double added_factor = 1;      // what attention and feed-forward add is multiplied by it
  double scale = 0;             // of scores
  double score_cap = 0;         // scores s are cap · tanh(s / cap); 0: as they are
  int64_t kernel = 0;           // rows that a short convolution sees
  bool kernel_bias = false;     // of short convolutions and the layers around them
  Names names{};
  std::vector<RotaryFrequencies> rotary{};
  std::vector<LayerKind> layers{};

  int64_t query_width() const { return heads * dim_head; }
  int64_t key_width() const { return key_heads * dim_head; }
  // Returns how many features of each head are turned, the first ones.
  int64_t turned() const;
  // Says whether each row depends on earlier rows alone.
  bool causal() const;
  bool has_windows() const;

  // Reads the configuration of a model of this family. Throws ConfigError.
  static Options From(Family family, Params& params);
};

// Reads by what scores or logits are capped; 0: by nothing. Throws ConfigError.
double CapParam(Params& params, const char* key, double fallback);

// Reads how many tokens there are. Throws ConfigError.
int64_t VocabularyOf(Family family, Params& params);

}  // namespace linserve::llama
