#include "models/sparse/masked_lm.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "models/config/activation_param.h"
#include "models/sparse/sparse_network.h"
#include "models/transformers/encoder.h"
#include "models/transformers/names.h"

namespace linserve {
namespace {

using transformers::Family;
using transformers::Options;

// Says what a family's class calls its parts.
struct MaskedLmNames {
  Family family;
  const char* encoder;
  const char* transform;
  const char* norm;
  const char* decoder;
  const char* other_bias;  // of the decoder, where it is tied; nullptr: none
};

constexpr std::array kMaskedLmNames = {
    MaskedLmNames{Family::kBert, "bert", "cls.predictions.transform.dense",
                  "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
                  "cls.predictions.bias"},
    MaskedLmNames{Family::kRoberta, "roberta", "lm_head.dense", "lm_head.layer_norm",
                  "lm_head.decoder", "lm_head.bias"},
    MaskedLmNames{Family::kDistilBert, "distilbert", "vocab_transform", "vocab_layer_norm",
                  "vocab_projector", nullptr},
    MaskedLmNames{Family::kModernBert, "model", "head.dense", "head.norm", "decoder", nullptr},
};

const MaskedLmNames& MaskedLmNamesOf(Family family) {
  return *std::find_if(kMaskedLmNames.begin(), kMaskedLmNames.end(),
                       [&](const MaskedLmNames& names) { return names.family == family; });
}

HeadLayer TransformOf(const MaskedLmNames& names, const Options& options, Params& params) {
  HeadLayer layer{.path = names.transform,
                  .outputs = options.dim,
                  .activation = options.activation,
                  .norm = HeadNorm{names.norm, options.eps, options.norm_bias}};
  // RoBERTa has the exact GELU here whatever the layers have, and DistilBERT this epsilon.
  if (options.family == Family::kRoberta) layer.activation = Activation::kGelu;
  if (options.family == Family::kDistilBert) layer.norm->eps = 1e-12;
  if (options.family == Family::kModernBert) {
    layer.biased = params.Flag("classifier_bias", false);
    layer.activation = ActivationParam(params, "classifier_activation");
  }
  return layer;
}

SparseHead HeadOf(const Options& options, Params& params) {
  const MaskedLmNames& names = MaskedLmNamesOf(options.family);
  SparseHead head{.encoder = names.encoder,
                  .words = transformers::NamesOf(options.family).words,
                  .transform = TransformOf(names, options, params),
                  .decoder = names.decoder,
                  .other_bias = names.other_bias != nullptr ? names.other_bias : "",
                  .tied = params.Flag("tie_word_embeddings", true),
                  .vocabulary = options.vocabulary};
  if (options.family == Family::kModernBert) head.biased = params.Flag("decoder_bias", true);
  head.sum = params.Choice("pooling_strategy", "max", {"max", "sum"}) == "sum";
  head.twice = params.Choice("activation_function", "relu", {"relu", "log1p_relu"}) == "log1p_relu";
  return head;
}

}  // namespace

std::unique_ptr<Network> MakeSparseEncoder(Family family, Params& params) {
  Options options = Options::From(family, params);
  options.pooler = false;  // the class has none, whatever add_pooling_layer says
  SparseHead head = HeadOf(options, params);
  return std::make_unique<SparseNetwork>(transformers::MakeEncoder(std::move(options)),
                                         std::move(head));
}

}  // namespace linserve
