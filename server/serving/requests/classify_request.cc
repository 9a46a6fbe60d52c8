#include "serving/requests/classify_request.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/json/json_string.h"
#include "core/sequence/content.h"
#include "serving/admission.h"
#include "serving/model_kind.h"

namespace linserve {
namespace {

int64_t BytesOf(const Texts& texts) {
  return std::accumulate(
      texts.begin(), texts.end(), int64_t{0},
      [](int64_t bytes, const std::string& text) { return bytes + std::ssize(text); });
}

// Returns how many bytes of an answer each byte of the scores becomes: with a score stand its label
// and the names of both.
int64_t AnswerBytes(const std::vector<std::string>& labels) {
  constexpr int64_t kBesideLabel = 64;
  int64_t longest = 0;
  for (const std::string& label : labels) longest = std::max(longest, std::ssize(label));
  return (kBesideLabel + kJsonOfTextByte * longest) / int64_t{sizeof(float)};
}

void ApplySigmoid(std::vector<float>& scores) {
  for (float& score : scores) score = static_cast<float>(1 / (1 + std::exp(-double{score})));
}

void ApplySoftmax(std::vector<float>& scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - most);
  for (float& score : scores) score = static_cast<float>(std::exp(score - most) / sum);
}

// Returns 0, 1 and so on, the ones first whose scores are higher.
template <typename Score>
std::vector<size_t> Descending(size_t count, const Score& score) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&score](size_t a, size_t b) { return score(a) > score(b); });
  return places;
}

}  // namespace

void ClassifyQuery::RankAll(std::string question) {
  ranks = true;
  const size_t count = texts.size();
  texts.push_back(std::move(question));
  for (size_t i = 0; i < count; ++i) sequences.push_back({.text = count, .second = i});
}

std::vector<float> Classified::Scores(size_t sequence) const {
  std::vector<float> scores = logits[sequence];
  // Those of a ranking are from 0 to 1, whatever the model was trained for.
  const bool values = problem_type == ProblemType::kRegression && !query->ranks;
  if (query->raw_scores || values) return scores;
  if (scores.size() == 1 || problem_type == ProblemType::kMultiLabel) {
    ApplySigmoid(scores);
  } else {
    ApplySoftmax(scores);
  }
  return scores;
}

std::vector<size_t> Classified::BestFirst(size_t sequence) const {
  const std::vector<float>& all = logits[sequence];
  return Descending(all.size(), [&all](size_t label) { return all[label]; });
}

std::vector<size_t> Classified::Ranking() const {
  return Descending(logits.size(), [this](size_t sequence) { return logits[sequence][0]; });
}

void ClassifyRequestState::Submit(ServiceContext& service, ClassifyQuery query,
                                  std::optional<Inflight::Reservation> place) {
  if (place) TakeOver(*std::move(place));
  query_ = std::make_shared<const ClassifyQuery>(std::move(query));
  std::string name = query_->model;
  for (const ModelKind kind : {ModelKind::kClassifier, ModelKind::kReranker}) {
    const bool fits = kind == ModelKind::kReranker || !query_->ranks;
    if (name.empty() && fits) name = OnlyModelOf(service, *context_.caller, kind);
  }
  WholeRequestState::Submit(service, FindModel(service, *context_.caller, name, 0, kModelHeader),
                            BytesOf(query_->texts));
}

absl::Status ClassifyRequestState::ReadOptions(const RpcLimits& limits, const ServedModel& model) {
  absl::Status kind = query_->ranks ? CheckRanks(model) : CheckClassifies(model);
  if (!kind.ok()) return kind;
  const ModelInfo& info = model.engine->info();
  classified_.model = model.name;
  prompt_name_ = query_->prompt_name;
  classified_.labels = info.labels;
  classified_.problem_type = info.problem_type;
  AnswerTakes(AnswerBytes(*info.labels));
  return CheckCount(std::ssize(query_->sequences), limits);
}

absl::Status ClassifyRequestState::ReadItems(Tokenization& work) {
  absl::Status place = ReserveItems(*work.model, query_->sequences.size());
  if (place.ok() && query_->echoes_texts) {
    place = ReserveBytes(*work.model, kJsonOfTextByte * BytesOf(query_->texts));
  }
  if (!place.ok()) return place;
  work.owner = query_;
  work.truncation = query_->truncation.Over(work.truncation);
  OutputOptions options;
  options.outputs = {kLogits};
  for (const auto& [text, second] : query_->sequences) {
    TextInput input{work.items.size(), query_->texts[text]};
    if (second) input.second = query_->texts[*second];
    work.texts.push_back(input);
    work.items.emplace_back(Item{{}, options});
  }
  return absl::OkStatus();
}

absl::Status ClassifyRequestState::Answer(std::vector<ItemResult> results, const Timing& last) {
  for (const ItemResult& result : results) {
    classified_.tokens += result.tokens;
    const Tensor& logits = result.outputs.begin()->second;
    if (FindNonfinite(logits)) {
      return absl::OutOfRangeError("a score is not finite; so it is with weights that overflow");
    }
    classified_.logits.emplace_back(logits.data<float>(), logits.data<float>() + logits.elements());
  }
  classified_.query = query_;
  classified_.timing = last;
  classified_.sending = UntilSent();
  Succeeded(last, results.size());
  done_(std::move(classified_));
  return absl::OkStatus();
}

}  // namespace linserve
