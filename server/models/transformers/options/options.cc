#include "models/transformers/options/options.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "attention/device/device_plugin.h"
#include "models/config/activation_param.h"
#include "models/config/hugging_face_config.h"
#include "models/transformers/global_tokens/global_params.h"
#include "models/transformers/options/bert_options.h"
#include "models/transformers/options/deberta_options.h"
#include "models/transformers/options/rotary_options.h"

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

constexpr size_t kMostTurns = 4096;  // of layers that come more than once

Options Mpnet(Params& params) {
  Options options = Bert(Family::kMpnet, params, {.vocabulary = 30527});
  options.padding = 1;  // whatever pad_token_id says
  options.distances = true;
  // The model counts 32 buckets, whatever number its table has.
  if (params.Positive("relative_attention_num_buckets", 32) != 32) {
    params.Fail("relative_attention_num_buckets", "32");
  }
  return options;
}

Options Electra(Params& params) {
  Options options = Bert(Family::kElectra, params, {.dim = 256, .heads = 4, .inner = 1024});
  options.embedded = params.Positive("embedding_size", 128);
  options.projects = options.embedded != options.dim;
  options.norms_tables = true;
  options.pooler = false;
  // Heads of other tasks read these.
  for (const char* key :
       {"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"}) {
    params.Ignore(key);
  }
  return options;
}

Options Albert(Params& params) {
  const UsualSizes usual{.vocabulary = 30000, .dim = 4096, .heads = 64, .inner = 16384};
  Options options = Bert(Family::kAlbert, params, usual);
  options.activation = ActivationParam(params, "hidden_act", "gelu_new");
  options.embedded = params.Positive("embedding_size", 128);
  options.projects = true;
  options.norms_tables = true;
  const size_t depth = options.layers.size();
  const auto groups = static_cast<size_t>(params.Depth("num_hidden_groups", 1));
  options.group = params.Depth("inner_group_num", 1);
  const auto inner = static_cast<size_t>(options.group);
  if (groups > depth) params.Fail("num_hidden_groups", "at most num_hidden_layers");
  if (depth * inner > kMostTurns) {
    params.Fail("inner_group_num", "with num_hidden_layers at most " + std::to_string(kMostTurns) +
                                       " layers together");
  }
  options.layers.resize(groups * inner);
  for (size_t i = 0; i < depth; ++i) {
    // The package divides in floating point, and cuts.
    const double per_group = static_cast<double>(depth) / static_cast<double>(groups);
    const auto group = static_cast<size_t>(static_cast<double>(i) / per_group);
    for (size_t j = 0; j < inner; ++j) options.turns.push_back(group * inner + j);
  }
  params.Ignore("classifier_dropout_prob");
  return options;
}

Options DistilBert(Params& params) {
  Options options{.family = Family::kDistilBert};
  options.vocabulary = params.Positive("vocab_size", 30522);
  // What other models call these sizes goes before its own names, as in the package.
  const auto name = [&](const char* others, const char* own) {
    params.Ignore(own);
    return params.Has(others) ? others : own;
  };
  SetSizes(options, params, name("hidden_size", "dim"), name("num_attention_heads", "n_heads"),
           "hidden_dim");
  const char* depth = name("num_hidden_layers", "n_layers");
  options.layers.resize(static_cast<size_t>(params.Depth(depth, 6)));
  RefuseIf(params, "is_causal");
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
  if (options.landmarks.count > 0 && params.IsNone("pad_token_id")) {
    params.Fail("pad_token_id", "the token that fills segments");
  }
  options.pad_token = params.NotNegative("pad_token_id", 1);
  if (options.landmarks.count > 0 && options.pad_token >= options.vocabulary) {
    params.Fail("pad_token_id", "less than vocab_size = " + std::to_string(options.vocabulary));
  }
  return options;
}

// Reads JinaBERT as its authors publish it: jinaai/jina-bert-implementation or, with qk_norm,
// jinaai/jina-bert-v2-qk-post-norm.
Options JinaBert(Params& params) {
  params.Choice("position_embedding_type", "alibi", {"alibi"});
  const bool later = params.Flag("qk_norm", false);
  Options options = BertSizes(Family::kBert, params, {});
  options.alibi = true;
  options.longest = LongestWithoutTable(params, "max_position_embeddings", 512);
  const std::vector<std::string> gates = {"geglu", "reglu"};
  std::vector<std::string> types = gates;
  if (!later) types.emplace_back("original");
  const std::string type =
      params.Choice("feed_forward_type", later ? gates[0] : types.back(), types);
  for (const char* key : {"emb_pooler", "attn_implementation"}) params.Ignore(key);
  if (type == "original") return options;
  options.family = later ? Family::kJinaCode : Family::kJinaBert;
  options.activation = type == gates[0] ? Activation::kGelu : Activation::kRelu;
  options.gated = true;
  options.gate_last = later;
  options.inner_bias = false;
  return options;
}

Options Longformer(Params& params) {
  Options options = Bert(Family::kLongformer, params, {});
  options.padding = params.NotNegative("pad_token_id", 1);
  const std::vector<int64_t> windows = WindowsOfLayers(params, options.layers.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    options.layers[i].window = std::min(windows[i] / 2, options.positions);
  }
  options.globals.asked = true;
  params.Ignore("onnx_export");
  return options;
}

Options BigBird(Params& params) {
  Options options = Bert(Family::kBigBird, params, {.vocabulary = 50358});
  options.positions = params.Positive("max_position_embeddings", 4096);
  options.activation = ActivationParam(params, "hidden_act", "gelu_new");
  options.query_bias = params.Flag("use_bias", true);
  options.scales_words = params.Flag("rescale_embeddings", false);
  options.globals = GlobalBlocks(params, options.positions);
  const int64_t block = options.globals.block;
  if (block > 0)
    std::fill(options.layers.begin(), options.layers.end(),
              LayerKind{.window = block, .run = block});
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
    case Family::kDeberta:
    case Family::kDebertaV2:
      return Deberta(family, params);
    case Family::kAlbert:
      return Albert(params);
    case Family::kElectra:
      return Electra(params);
    case Family::kJinaBert:
    case Family::kJinaCode:
      return JinaBert(params);
    case Family::kLongformer:
      return Longformer(params);
    case Family::kBigBird:
      return BigBird(params);
    case Family::kEsm:
      return Esm(params);
    case Family::kErnie:
      return Ernie(params);
    case Family::kMegatronBert:
      return MegatronBert(params);
    case Family::kRoFormer:
      return RoFormer(params);
    case Family::kJinaV3:
      return JinaV3(params);
    case Family::kRoberta:
    case Family::kData2Vec:
    case Family::kRobertaPreNorm:
    case Family::kXlmRobertaXl:
      return Roberta(family, params);
    case Family::kBert:
      break;
  }
  return Bert(family, params, {});
}

}  // namespace

void SetSizes(Options& options, Params& params, const char* dim, const char* heads,
              const char* inner, int64_t usual_inner, int64_t usual_dim, int64_t usual_heads) {
  options.dim = params.Positive(dim, usual_dim);
  options.heads = params.Heads(heads, usual_heads);
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
  const bool plain = !relative.defined() && score_terms == 1 && !hides_queries;
  return plain && !globals.first && globals.block == 0 && landmarks.count == 0 &&
         landmarks.kernel == 0 && convolution.size == 0 &&
         AttendsOnDevices(dim_head(), windows || distances || alibi);
}

}  // namespace linserve::transformers
