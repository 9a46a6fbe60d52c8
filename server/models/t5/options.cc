#include "models/t5/options.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "models/config/activation_param.h"
#include "models/config/hugging_face_config.h"

namespace linserve::t5 {
namespace {

// A configuration may be given with what only training or the decoder reads.
constexpr std::array kOfOthers = {
    "dropout_rate",           "classifier_dropout", "initializer_factor", "num_decoder_layers",
    "decoder_start_token_id", "use_cache",          "is_encoder_decoder", "tie_word_embeddings",
    "scale_decoder_outputs",  "pad_token_id",       "bos_token_id",       "eos_token_id"};

// Reads a size by a function such as Params::Positive(). The package has two names for it, of which
// the second one counts where both are there.
template <typename Read>
int64_t Size(Params& params, Read read, const char* name, const char* other, int64_t usual) {
  const int64_t size = (params.*read)(name, usual);
  return (params.*read)(other, size);
}

// Reads "relu", "gated-gelu" and their like, and what a saved configuration says of it besides,
// which counts.
void ReadFeedForward(Params& params, const char* usual, Options& options) {
  const std::string gate = "gated-";
  std::vector<std::string> forms = ActivationNames();
  for (const std::string& name : ActivationNames()) forms.push_back(gate + name);
  std::string form = params.Choice("feed_forward_proj", usual, forms);
  options.gated = params.Flag("is_gated_act", form.starts_with(gate));
  if (form == gate + "gelu") form = gate + "gelu_new";
  if (form.starts_with(gate)) form.erase(0, gate.size());
  options.activation = ActivationParam(params, "dense_act_fn", form.c_str());
}

void ReadDistances(Params& params, Options& options) {
  constexpr const char* kBuckets = "relative_attention_num_buckets";
  constexpr const char* kFurthest = "relative_attention_max_distance";
  constexpr int64_t kFewest = 4;  // with which either direction has one for a single distance
  options.buckets = params.Positive(kBuckets, 32);
  options.furthest = params.Positive(kFurthest, 128);
  if (options.buckets < kFewest) params.Fail(kBuckets, "at least " + std::to_string(kFewest));
  const int64_t alone = options.buckets / 2 / 2;  // those distances that have one each
  if (options.furthest > alone) return;
  params.Fail(kFurthest, "more than " + std::to_string(alone) +
                             ", a quarter of relative_attention_num_buckets");
}

}  // namespace

Options Options::From(Family family, Params& params) {
  const bool first = family == Family::kT5;  // those after it have other usual sizes
  Options options;
  options.vocabulary = params.Positive("vocab_size", first ? 32128 : 250112);
  const auto positive =
      static_cast<int64_t (Params::*)(const std::string&, int64_t)>(&Params::Positive);
  const auto heads = static_cast<int64_t (Params::*)(const std::string&, int64_t)>(&Params::Heads);
  const auto depth = static_cast<int64_t (Params::*)(const std::string&, int64_t)>(&Params::Depth);
  options.dim = Size(params, positive, "d_model", "hidden_size", 512);
  options.dim_head = Size(params, positive, "d_kv", "head_dim", 64);
  options.heads = Size(params, heads, "num_heads", "num_attention_heads", first ? 8 : 6);
  options.depth = Size(params, depth, "num_layers", "num_hidden_layers", first ? 6 : 8);
  options.inner = params.Positive("d_ff", first ? 2048 : 1024);
  options.eps = params.Number("layer_norm_epsilon", 1e-6, 0, 1);
  options.own_tables = family == Family::kUmt5;
  ReadFeedForward(params, first ? "relu" : "gated-gelu", options);
  ReadDistances(params, options);
  // The package computes any length. This is what T5 was trained with, or as long as texts get.
  options.longest =
      std::max(LongestWithoutTable(params, "n_positions", 512), params.Positive(kTokensUpTo, 1));
  for (const char* key : {"is_decoder", "is_causal"}) {
    if (params.Flag(key, false)) params.Fail(key, "false: only encoders are computed");
  }
  for (const char* key : kOfOthers) params.Ignore(key);
  return options;
}

}  // namespace linserve::t5
