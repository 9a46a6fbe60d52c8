#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model.h"
#include "models/config/class_labels.h"
#include "models/llama/model.h"
#include "models/sentences/head_network.h"

namespace linserve::llama {
namespace {

// Reads how EuroBERT pools rows. Of its two layers the second one is linear, so that the mean of
// its scores (`late`) is its score of the mean.
void ReadPooling(Params& params, Head& head) {
  const std::vector<std::string> known = {"bos", "mean", "late"};
  const std::string older = params.Choice("clf_pooling", "late", known);
  const std::string pooling = params.Choice("classifier_pooling", older, known);
  if (params.Has("clf_pooling") && older != pooling) {
    params.Fail("clf_pooling", "what classifier_pooling says");
  }
  head.pooling = pooling == "bos" ? Pooling::kCls : Pooling::kMean;
  head.hidden_too = pooling == "bos";
  head.layers_of_rows = pooling == "late" ? 1 : 0;
}

// Returns the token that is not scored; nullopt: all are.
std::optional<int64_t> PadTokenOf(Family family, Params& params) {
  constexpr const char* kKey = "pad_token_id";
  const std::map<Family, int64_t> usual = {{Family::kGemma, 0},  {Family::kGemma2, 0},
                                           {Family::kGemma3, 0}, {Family::kPhi3, 32000},
                                           {Family::kOlmo2, 1},  {Family::kSmolLm3, 128004}};
  const auto found = usual.find(family);
  const int64_t token = params.NotNegative(kKey, found == usual.end() ? 0 : found->second);
  const bool there = params.Has(kKey) || (found != usual.end() && !params.IsNone(kKey));
  return there ? std::optional(token) : std::nullopt;
}

Head ClassifierHead(Family family, int64_t dim, Params& params) {
  Head head{.output = kLogits,
            .encoder = "model",
            .input = "last_hidden_state",
            .layers = {},
            .labels = ClassLabelsParam(params)};
  HeadLayer scores{.path = "score", .outputs = std::ssize(head.labels.names), .biased = false};
  if (family == Family::kEuroBert) {
    ReadPooling(params, head);
    head.layers.push_back({.path = "dense", .outputs = dim, .activation = Activation::kGelu});
    scores.path = "classifier";
    scores.biased = true;
  } else {
    head.pooling = Pooling::kLast;
    head.hidden_too = true;
    head.pad_token = PadTokenOf(family, params);
  }
  head.layers.push_back(std::move(scores));
  return head;
}

constexpr double kUsualLogitCap = 30;  // of Gemma 2

int64_t TokenIdParam(Params& params, const char* key, int64_t vocabulary) {
  const int64_t id = params.NotNegative(key, vocabulary);
  if (id >= vocabulary) {
    params.Fail(key, "a token's id, below vocab_size = " + std::to_string(vocabulary));
  }
  return id;
}

AnswerTokens AnswersParam(Family family, Params& params) {
  AnswerTokens answers;
  answers.vocabulary = VocabularyOf(family, params);
  answers.yes = TokenIdParam(params, "true_token_id", answers.vocabulary);
  if (params.Has("false_token_id")) {
    answers.no = TokenIdParam(params, "false_token_id", answers.vocabulary);
  }
  const bool usually = IsGemma(family) || family == Family::kSmolLm3 || family == Family::kLfm2;
  bool tied = params.Flag("tie_word_embeddings", usually);
  if (family == Family::kLfm2) tied = params.Flag("tie_embedding", tied);
  if (tied) answers.tied = "embed_tokens.weight";
  if (family == Family::kGranite) {
    constexpr double kLargestScaling = 1e9;
    answers.divisor = params.Number("logits_scaling", 1, 1 / kLargestScaling, kLargestScaling);
  }
  constexpr const char* kCap = "final_logit_softcapping";
  if (family == Family::kGemma2 || family == Family::kGemma3) {
    answers.cap = CapParam(params, kCap, family == Family::kGemma2 ? kUsualLogitCap : 0);
  } else {
    params.RequireNone(kCap, "logits are not capped");
  }
  return answers;
}

}  // namespace

std::unique_ptr<Network> MakeClassifier(Family family, Params& params) {
  std::unique_ptr<Network> model = MakeModel(family, params);
  const int64_t dim = model->signature().outputs[0].axes.back().size;
  Head head = ClassifierHead(family, dim, params);
  return std::make_unique<HeadNetwork>(std::move(model), std::move(head));
}

std::unique_ptr<Network> MakeAnswering(Family family, Params& params) {
  Head head{.output = kLogits,
            .encoder = "model",
            .input = "last_hidden_state",
            .pooling = Pooling::kLast,
            .layers = {},
            .labels = {.names = {"LABEL_0"}}};
  head.layers.push_back(
      {.path = "lm_head", .outputs = 1, .biased = false, .answers = AnswersParam(family, params)});
  return std::make_unique<HeadNetwork>(MakeModel(family, params), std::move(head));
}

}  // namespace linserve::llama
