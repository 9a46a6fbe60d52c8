#include "models/transformers/options/deberta_options.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "models/config/activation_param.h"
#include "models/config/hugging_face_config.h"
#include "models/transformers/options/rotary_options.h"

namespace linserve::transformers {
namespace {

// Returns the parts of a text between bars, as the package reads them.
std::vector<std::string> BetweenBars(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '|') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
  }
  return parts;
}

// Reads an integer of which one below 1 means that nothing is said.
int64_t OrNothing(Params& params, const char* key) {
  if (params.Number(key, -1, -1, static_cast<double>(int64_t{1} << 31)) < 1) return 0;
  return params.Positive(key);
}

// Reads which of the two take part: position_attention_types of "c2p|p2c" or ["c2p", "p2c"].
void ReadTypes(Params& params, RelativePositions& positions, int64_t& terms) {
  constexpr const char* kKey = "pos_att_type";
  const std::vector<std::string> known = {"c2p", "p2c"};
  std::vector<std::string> types;
  if (params.IsList(kKey)) {
    types = params.Choices(kKey, known);
  } else if (params.Has(kKey)) {
    types = BetweenBars(params.Text(kKey, ""));
  }
  for (const std::string& type : types) {
    bool& there = type == known[0] ? positions.of_queries : positions.of_keys;
    if (there || std::find(known.begin(), known.end(), type) == known.end()) {
      params.Fail(kKey, "c2p, p2c, or both with a bar between them");
    }
    there = true;
  }
  terms = 1 + std::ssize(types);
}

// Reads the table of relative positions, which is there with relative_attention.
void ReadTable(Family family, Params& params, RelativePositions& positions) {
  const int64_t longest = params.Positive("max_position_embeddings", 512);
  const int64_t most = OrNothing(params, "max_relative_positions");
  positions.span = most > 0 ? most : longest;
  positions.biased_keys = family == Family::kDebertaV2;
  if (family == Family::kDeberta) return;
  positions.shared = params.Flag("share_att_key", false);
  constexpr const char* kBuckets = "position_buckets";
  positions.buckets = OrNothing(params, kBuckets);
  if (positions.buckets == 0) return;
  positions.furthest = positions.span;
  positions.span = positions.buckets;
  // Where the logarithm has nowhere to go, it leads back or is no number.
  if (positions.buckets < 2 || positions.furthest - 1 <= positions.buckets / 2) {
    params.Fail(kBuckets, "from 2 to less than twice the " + std::to_string(positions.furthest) +
                              " of max_relative_positions or, without that, of "
                              "max_position_embeddings");
  }
}

bool ReadNorm(Params& params) {
  constexpr const char* kKey = "norm_rel_ebd";
  const std::vector<std::string> norms = BetweenBars(params.Text(kKey, "none"));
  const auto is = [&](const char* name) {
    return std::find(norms.begin(), norms.end(), name) != norms.end();
  };
  if (norms.size() == 1 && is("none")) return false;
  if (norms.size() != 1 || !is("layer_norm")) params.Fail(kKey, "one of none, layer_norm");
  return true;
}

RowKernel ReadConvolution(const Options& options, Params& params) {
  RowKernel kernel{.size = params.NotNegative("conv_kernel_size", 0),
                   .groups = params.Positive("conv_groups", 1),
                   .activation = ActivationParam(params, "conv_act", "tanh")};
  if (kernel.size == 0) return kernel;
  if (kernel.size % 2 == 0) {
    params.Fail("conv_kernel_size", "an odd number, with which a row has one result");
  }
  if (options.dim % kernel.groups != 0) params.Fail("conv_groups", "a divisor of hidden_size");
  return kernel;
}

// Reads what only the second version has.
void ReadSecond(Options& options, Params& params) {
  options.relative.normed = ReadNorm(params);
  options.convolution = ReadConvolution(options, params);
  if (params.Positive("attention_head_size", options.dim_head()) != options.dim_head()) {
    params.Fail("attention_head_size",
                "hidden_size / num_attention_heads = " + std::to_string(options.dim_head()));
  }
}

constexpr std::array kOfPooling = {"pooler_hidden_act", "pooler_hidden_size", "pooler_dropout",
                                   "cls_dropout", "legacy"};

}  // namespace

Options Deberta(Family family, Params& params) {
  const bool first = family == Family::kDeberta;
  Options options{.family = family};
  options.vocabulary = params.Positive("vocab_size", first ? 50265 : 128100);
  SetSizes(options, params, "hidden_size", "num_attention_heads", "intermediate_size",
           first ? 3072 : 6144, first ? 768 : 1536, first ? 12 : 24);
  options.layers.resize(static_cast<size_t>(params.Depth("num_hidden_layers", first ? 12 : 24)));
  options.activation = ActivationParam(params, "hidden_act");
  options.eps = params.Number("layer_norm_eps", 1e-7, 0, 1);
  options.types = params.NotNegative("type_vocab_size", 0);
  options.embedded = params.Positive("embedding_size", options.dim);
  options.projects = options.embedded != options.dim;
  options.zeroes_hidden = true;
  options.hides_queries = true;
  options.joined_by_head = first;
  if (first && params.Flag("talking_head", false)) params.Fail("talking_head", "false");
  if (!first) ReadSecond(options, params);
  ReadTypes(params, options.relative, options.score_terms);
  if (params.Flag("relative_attention", false)) {
    ReadTable(family, params, options.relative);
  } else {
    for (const char* key : {"max_relative_positions", "position_buckets", "share_att_key"}) {
      params.Ignore(key);
    }
  }
  if (params.Flag("position_biased_input", true)) {
    options.positions = params.Positive("max_position_embeddings", 512);
  } else {
    options.longest = LongestWithoutTable(params, "max_position_embeddings", 512);
  }
  for (const char* key : kOfPooling) params.Ignore(key);
  return options;
}

Activation DebertaPooling(const Options& options, Params& params) {
  constexpr const char* kSize = "pooler_hidden_size";
  if (params.Positive(kSize, options.dim) != options.dim) {
    params.Fail(kSize, "hidden_size = " + std::to_string(options.dim));
  }
  return ActivationParam(params, "pooler_hidden_act");
}

}  // namespace linserve::transformers
