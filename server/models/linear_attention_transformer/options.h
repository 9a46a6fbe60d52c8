#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/config/params.h"
#include "models/network/network.h"
#include "models/tokens/token_positions.h"

namespace linserve::linear_attention_transformer {

// Says what absent arguments mean, where that is not the same for all.
struct Defaults {
  std::optional<int64_t> dim_head;  // nullopt: dim / heads
  bool receives_context = false;
  bool return_embeddings = false;
};

// Holds the constructor arguments of linear_attention_transformer.LinearAttentionTransformer
// 0.19.1, under the package's own names.
struct Options {
  struct LinformerSettings {
    int64_t seq_len;
    int64_t k;
  };

  int64_t dim = 0;
  int64_t depth = 0;
  int64_t max_seq_len = 0;
  int64_t heads = 8;
  int64_t dim_head = 0;
  bool causal = false;
  int64_t blindspot_size = 1;
  std::vector<int64_t> n_local_attn_heads;  // of each main layer
  int64_t local_attn_window_size = 128;
  // Whether the model was trained with a version of local-attention (1.5.3 to 1.8.4) whose first
  // and last window see what lies outside a sequence without a mask.
  bool local_attention_sees_outside = false;
  bool reversible = false;
  bool ff_glu = false;
  bool receives_context = false;
  bool attend_axially = false;
  bool shift_tokens = false;
  std::optional<LinformerSettings> linformer_settings;
  std::optional<LinformerSettings> context_linformer_settings;
  std::set<int64_t> pkm_layers;  // counted from 1

  bool has_local_heads() const;

  // Returns the rows of a context as long as the sequence, as far as the model takes them.
  int64_t ContextRows(int64_t rows) const;

  // Throws ConfigError for arguments that the package cannot build.
  static Options From(Params& params, const Defaults& defaults = {});

  // Says why there are no sessions; empty if there are.
  std::string SessionRefusal() const;

  // Says what Network::Recordable() does: rows of a sequence meet in the device's kernel for global
  // heads alone.
  bool Recordable() const;

  // Returns facts and warnings for `linserve inspect`.
  NetworkNotes Notes() const;
};

// Holds the constructor arguments of linear_attention_transformer.LinearAttentionTransformerLM.
struct LanguageModelOptions {
  Options stack;
  int64_t num_tokens = 0;
  int64_t emb_dim = 0;
  bool return_embeddings = false;
  PositionOptions::Kind positions = PositionOptions::Kind::kAxial;

  static LanguageModelOptions From(Params& params, const Defaults& defaults = {.dim_head = 64});

  // Returns how many rows the tables of positions and Linformer's projections have.
  int64_t LongestInput() const;
};

}  // namespace linserve::linear_attention_transformer
