#include "models/transformers/classifier.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/model.h"
#include "models/config/activation_param.h"
#include "models/config/class_labels.h"
#include "models/sentences/head_network.h"
#include "models/transformers/encoder.h"
#include "models/transformers/options/deberta_options.h"

namespace linserve::transformers {
namespace {

// Says what a family's class calls its parts.
struct ClassifierNames {
  Family family;
  const char* encoder;
  const char* hidden;  // the layer of the first row, or of the mean; nullptr: the encoder's pooler
  const char* scores;
};

constexpr std::array kClassifierNames = {
    ClassifierNames{Family::kBert, "bert", nullptr, "classifier"},
    ClassifierNames{Family::kRoberta, "roberta", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kDistilBert, "distilbert", "pre_classifier", "classifier"},
    ClassifierNames{Family::kMpnet, "mpnet", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kModernBert, "model", "head.dense", "classifier"},
    ClassifierNames{Family::kNystromformer, "nystromformer", "classifier.dense",
                    "classifier.out_proj"},
    ClassifierNames{Family::kNomicBert, "nomic_bert", nullptr, "classifier"},
    ClassifierNames{Family::kGte, "gte", nullptr, "classifier"},
    ClassifierNames{Family::kElectra, "electra", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kAlbert, "albert", nullptr, "classifier"},
    ClassifierNames{Family::kJinaBert, "bert", nullptr, "classifier"},
    ClassifierNames{Family::kJinaCode, "bert", nullptr, "classifier"},
    ClassifierNames{Family::kLongformer, "longformer", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kBigBird, "bert", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kDeberta, "deberta", "pooler.dense", "classifier"},
    ClassifierNames{Family::kDebertaV2, "deberta", "pooler.dense", "classifier"},
    ClassifierNames{Family::kEsm, "esm", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kErnie, "ernie", nullptr, "classifier"},
    ClassifierNames{Family::kData2Vec, "data2vec_text", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kRobertaPreNorm, "roberta_prelayernorm", "classifier.dense",
                    "classifier.out_proj"},
    ClassifierNames{Family::kXlmRobertaXl, "roberta", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kMegatronBert, "bert", nullptr, "classifier"},
    ClassifierNames{Family::kRoFormer, "roformer", "classifier.dense", "classifier.out_proj"},
    ClassifierNames{Family::kJinaV3, "roberta", "classifier.dense", "classifier.out_proj"},
};

const ClassifierNames& ClassifierNamesOf(Family family) {
  return *std::find_if(kClassifierNames.begin(), kClassifierNames.end(),
                       [&](const ClassifierNames& names) { return names.family == family; });
}

HeadLayer HiddenLayer(const std::string& path, const Options& options, Params& params) {
  HeadLayer layer{.path = path, .outputs = options.dim, .activation = Activation::kTanh};
  if (options.family == Family::kElectra) layer.activation = Activation::kGelu;
  if (options.family == Family::kDistilBert) layer.activation = Activation::kRelu;
  if (options.family == Family::kNystromformer || options.family == Family::kBigBird ||
      options.family == Family::kRoFormer)
    layer.activation = options.activation;
  if (options.family == Family::kDeberta || options.family == Family::kDebertaV2)
    layer.activation = DebertaPooling(options, params);
  if (options.family == Family::kModernBert) {
    layer.biased = params.Flag("classifier_bias", false);
    layer.activation = ActivationParam(params, "classifier_activation");
    layer.norm = HeadNorm{"head.norm", options.eps, options.norm_bias};
  }
  return layer;
}

// Reads how ModernBert pools rows; the others all take the first one, even one that a mask hides.
void ReadPooling(Head& head, Params& params) {
  head.hidden_too = params.Choice("classifier_pooling", "cls", {"cls", "mean"}) == "cls";
  head.pooling = head.hidden_too ? Pooling::kCls : Pooling::kMean;
}

Head ClassifierHead(const Options& options, Params& params) {
  const ClassifierNames& names = ClassifierNamesOf(options.family);
  Head head{.output = kLogits,
            .encoder = names.encoder,
            .input = options.pooler ? "pooler_output" : "last_hidden_state",
            .pooling = Pooling::kCls,
            .hidden_too = true,
            .layers = {},
            .labels = ClassLabelsParam(params)};
  if (options.family == Family::kModernBert) ReadPooling(head, params);
  if (names.hidden != nullptr) head.layers.push_back(HiddenLayer(names.hidden, options, params));
  head.layers.push_back({.path = names.scores, .outputs = std::ssize(head.labels.names)});
  for (const char* key : {"classifier_dropout", "seq_classif_dropout"}) params.Ignore(key);
  return head;
}

}  // namespace

std::unique_ptr<Network> MakeClassifier(Family family, Params& params) {
  Options options = Options::From(family, params);
  // The class has it or not, whatever add_pooling_layer says.
  options.pooler = ClassifierNamesOf(family).hidden == nullptr;
  options.globals.first = family == Family::kLongformer;
  Head head = ClassifierHead(options, params);
  return std::make_unique<HeadNetwork>(MakeEncoder(std::move(options)), std::move(head));
}

}  // namespace linserve::transformers
