#include "models/transformers/options.h"

#include <array>
#include <string>

#include "models/config/activation_param.h"
#include "models/transformers/rotary_options.h"

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
  RefuseIf(params, "is_causal");
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

void SetSizes(Options& options, Params& params, const char* dim, const char* heads,
              const char* inner, int64_t usual_inner) {
  options.dim = params.Positive(dim, 768);
  options.heads = params.Heads(heads, 12);
  options.inner = params.Positive(inner, usual_inner);
  if (options.dim % options.heads != 0) {
    params.Fail(dim, "a multiple of " + std::string(heads) + " = " + std::to_string(options.heads));
  }
}

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
