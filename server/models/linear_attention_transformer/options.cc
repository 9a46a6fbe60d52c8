#include "models/linear_attention_transformer/options.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace linserve::linear_attention_transformer {
namespace {

std::vector<int64_t> LocalHeads(Params& params, const Options& options) {
  const char* key = "n_local_attn_heads";
  std::vector<int64_t> heads = params.NotNegativeList(key).value_or(std::vector<int64_t>{0});
  if (!params.IsList(key)) {
    heads = std::vector<int64_t>(static_cast<size_t>(options.depth), heads[0]);
  } else if (heads.size() != static_cast<size_t>(options.depth)) {
    params.Fail(
        key, "an integer, or one for each of depth = " + std::to_string(options.depth) + " layers");
  }
  if (*std::max_element(heads.begin(), heads.end()) > options.heads) {
    params.Fail(key, "at most heads = " + std::to_string(options.heads));
  }
  return heads;
}

// Reads the argument that says which version of local-attention the model was trained with.
bool LocalAttentionSeesOutside(Params& params) {
  constexpr const char* kKey = "local_attention";
  const std::string version = params.Text(kKey, "1.11.2");
  const std::vector<std::string> words = absl::StrSplit(version, '.');
  std::array<uint32_t, 3> parts{};
  bool valid = words.size() == parts.size();
  for (size_t i = 0; valid && i < parts.size(); ++i) valid = absl::SimpleAtoi(words[i], &parts[i]);
  if (!valid) {
    params.Fail(kKey, "a version of the package local-attention, such as \"1.8.4\"");
  }
  return parts >= std::array{1U, 5U, 3U} && parts <= std::array{1U, 8U, 4U};
}

std::optional<Options::LinformerSettings> ReadLinformerSettings(Params& params) {
  Params* settings = params.NamedTuple("linformer_settings", {"k"});
  if (settings == nullptr) return std::nullopt;
  return Options::LinformerSettings{0, settings->Positive("k")};
}

std::optional<Options::LinformerSettings> ReadContextLinformerSettings(Params& params) {
  Params* settings = params.NamedTuple("context_linformer_settings", {"seq_len", "k"});
  if (settings == nullptr) return std::nullopt;
  return Options::LinformerSettings{settings->Positive("seq_len"), settings->Positive("k")};
}

// Python's None, which the language model passes on, means dim / heads; an absent dim_head does
// not.
bool IsHeadWidthOpen(const Params& params, const Defaults& defaults) {
  if (params.Has("dim_head")) return false;
  return !defaults.dim_head || params.IsNone("dim_head");
}

void CheckHeads(const Params& params, const Options& options, bool open_dim_head) {
  // Axial layers have heads of dim / heads whatever dim_head is, and Linformer's attention asserts
  // that they could.
  const bool must_divide = open_dim_head || options.attend_axially || options.linformer_settings ||
                           (options.receives_context && options.context_linformer_settings);
  if (must_divide && options.dim % options.heads != 0) {
    params.Fail("dim", "a multiple of heads = " + std::to_string(options.heads));
  }
}

void CheckCombinations(const Params& params, const Options& options) {
  if (options.causal && options.linformer_settings) {
    params.Fail("linformer_settings", "none with causal: Linformer's attention has no causal form");
  }
  const int64_t groups = options.causal ? 2 : 3;
  if (options.shift_tokens && options.dim < groups) {
    params.Fail("dim", "at least " + std::to_string(groups) +
                           " with shift_tokens: that many groups of features are shifted");
  }
}

void CheckPositions(const Params& params, const LanguageModelOptions& options) {
  if (options.positions != PositionOptions::Kind::kRotary) return;
  if (options.stack.attend_axially) {
    params.Fail("use_rotary_emb",
                "false with attend_axially: a column has fewer rows than the "
                "sequence has positions");
  }
  if (params.IsNone("dim_head")) params.Fail("dim_head", "a width, which use_rotary_emb needs");
  if (options.stack.dim_head % 2 != 0) {
    params.Fail("dim_head", "an even width with use_rotary_emb; it is " +
                                std::to_string(options.stack.dim_head));
  }
  if (options.emb_dim % 2 != 0) {
    params.Fail("emb_dim",
                "an even width with use_rotary_emb; it is " + std::to_string(options.emb_dim));
  }
}

}  // namespace

bool Options::has_local_heads() const {
  return std::any_of(n_local_attn_heads.begin(), n_local_attn_heads.end(),
                     [](int64_t local) { return local > 0; });
}

int64_t Options::ContextRows(int64_t rows) const {
  if (!receives_context) return 0;
  return context_linformer_settings ? std::min(rows, context_linformer_settings->seq_len) : rows;
}

Options Options::From(Params& params, const Defaults& defaults) {
  Options options;
  options.dim = params.Positive("dim");
  options.depth = params.Depth("depth");
  options.max_seq_len = params.Positive("max_seq_len");
  options.heads = params.Positive("heads", 8);
  options.causal = params.Flag("causal", false);
  options.blindspot_size = params.NotNegative("blindspot_size", 1);
  options.n_local_attn_heads = LocalHeads(params, options);
  options.local_attn_window_size = params.Positive("local_attn_window_size", 128);
  options.local_attention_sees_outside =
      LocalAttentionSeesOutside(params) && options.has_local_heads();
  options.reversible = params.Flag("reversible", false);
  options.ff_glu = params.Flag("ff_glu", false);
  options.receives_context = params.Flag("receives_context", defaults.receives_context);
  options.attend_axially = params.Flag("attend_axially", false);
  options.shift_tokens = params.Flag("shift_tokens", false);
  options.linformer_settings = ReadLinformerSettings(params);
  if (options.linformer_settings) options.linformer_settings->seq_len = options.max_seq_len;
  options.context_linformer_settings = ReadContextLinformerSettings(params);
  const auto pkm_layers = params.NotNegativeList("pkm_layers").value_or(std::vector<int64_t>{});
  options.pkm_layers = {pkm_layers.begin(), pkm_layers.end()};
  const bool open_dim_head = IsHeadWidthOpen(params, defaults);
  CheckHeads(params, options, open_dim_head);
  options.dim_head = params.Positive(
      "dim_head", open_dim_head ? options.dim / options.heads : defaults.dim_head.value_or(0));
  CheckCombinations(params, options);
  params.Positive("ff_chunks", 1);  // slices of the length: the same numbers
  params.Ignore("pkm_num_keys");    // the package never passes it on: always 128
  for (const char* dropout : {"ff_dropout", "attn_layer_dropout", "attn_dropout"}) {
    params.Ignore(dropout);
  }
  return options;
}

std::string Options::SessionRefusal() const {
  if (linformer_settings) return "linformer_settings: it projects the whole input along its length";
  if (!causal) return "causal is false, and every row attends to those after it";
  if (attend_axially) return "attend_axially: every column of the fold would need a state";
  if (receives_context && context_linformer_settings) {
    return "context_linformer_settings: what it projects of the context is not kept";
  }
  if (local_attention_sees_outside) {
    return "local_attention: in that version the numbers change with the end of a last window";
  }
  return "";
}

bool Options::Recordable() const {
  return !has_local_heads() && !receives_context && !attend_axially && !shift_tokens &&
         !linformer_settings && pkm_layers.empty();
}

NetworkNotes Options::Notes() const {
  NetworkNotes notes;
  const int64_t kinds = 1 + (attend_axially ? 1 : 0) + (receives_context ? 1 : 0);
  notes.facts = {{"layers", std::to_string(depth * kinds) + (reversible ? ", reversible" : "")},
                 {"attention", linformer_settings ? "linformer"
                               : causal           ? "linear, causal"
                                                  : "linear"}};
  if (has_local_heads()) {
    notes.facts.emplace_back("window", std::to_string(local_attn_window_size) + " rows");
    notes.facts.emplace_back("outside", local_attention_sees_outside
                                            ? "rows of -1 are seen at both ends where no mask is "
                                              "given, as in local-attention 1.5.3 to 1.8.4"
                                            : "is hidden, as in local-attention from 1.8.5 on");
  }
  if (ff_glu && kinds == 1) {
    notes.warnings.emplace_back(
        "ff_glu has no effect: in the package it is of axial and context layers only");
  }
  if (linformer_settings) {
    notes.warnings.emplace_back(
        "linformer_settings: input_mask is ignored in the main layers, as in the package");
    if (has_local_heads()) {
      notes.warnings.emplace_back("n_local_attn_heads has no effect with linformer_settings");
    }
  }
  if (receives_context && context_linformer_settings) {
    notes.warnings.emplace_back(
        "context_linformer_settings: context_mask is ignored, as in the package");
  }
  if (!receives_context && context_linformer_settings) {
    notes.warnings.emplace_back(
        "context_linformer_settings has no effect without receives_context");
  }
  for (const int64_t layer : pkm_layers) {
    if (layer >= 1 && layer <= depth) continue;
    notes.warnings.push_back("pkm_layers: there is no layer " + std::to_string(layer) +
                             ", they are counted from 1 to " + std::to_string(depth));
  }
  return notes;
}

LanguageModelOptions LanguageModelOptions::From(Params& params, const Defaults& defaults) {
  LanguageModelOptions options;
  options.stack = Options::From(params, defaults);
  options.num_tokens = params.Positive("num_tokens");
  options.emb_dim = params.Positive("emb_dim", options.stack.dim);
  options.return_embeddings = params.Flag("return_embeddings", defaults.return_embeddings);
  const bool axial = params.Flag("use_axial_pos_emb", true);
  options.positions = axial ? PositionOptions::Kind::kAxial : PositionOptions::Kind::kLearned;
  if (params.Flag("use_rotary_emb", false)) options.positions = PositionOptions::Kind::kRotary;
  CheckPositions(params, options);
  if (options.return_embeddings && options.emb_dim != options.stack.dim) {
    params.Fail("emb_dim", "dim = " + std::to_string(options.stack.dim) +
                               " with return_embeddings: the package's last norm has that width");
  }
  const int64_t window = options.stack.local_attn_window_size;
  const bool local = params.IsList("n_local_attn_heads") || options.stack.has_local_heads();
  if (local && options.stack.max_seq_len % window != 0) {
    params.Fail("max_seq_len", "a multiple of local_attn_window_size = " + std::to_string(window) +
                                   ", since there are local heads");
  }
  return options;
}

int64_t LanguageModelOptions::LongestInput() const {
  if (positions != PositionOptions::Kind::kAxial || stack.linformer_settings)
    return stack.max_seq_len;
  const int64_t window = stack.local_attn_window_size;
  return (stack.max_seq_len + window - 1) / window * window;
}

}  // namespace linserve::linear_attention_transformer
