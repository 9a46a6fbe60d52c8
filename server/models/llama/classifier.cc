#include <iterator>
#include <memory>
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
    const bool usual = IsGemma(family) && !params.IsNone("pad_token_id");
    if (usual || params.Has("pad_token_id")) head.pad_token = params.NotNegative("pad_token_id", 0);
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
  if (params.Flag("tie_word_embeddings", IsGemma(family))) answers.tied = "embed_tokens.weight";
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
