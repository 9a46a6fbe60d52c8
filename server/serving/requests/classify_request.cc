#include "serving/requests/classify_request.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/json/json_string.h"
#include "core/sequence/content.h"
#include "core/threads/guarded.h"
#include "serving/admission.h"
#include "serving/model_kind.h"

namespace linserve {
namespace {

// So many products of numbers take as long as a byte of a text does to tokenize, by which the work
// of threads is counted.
constexpr int64_t kProductsOfByte = 256;
// Bounds one turn to a few milliseconds.
constexpr int64_t kComparedPerTurn = 32 << 10;

// Returns how much work it is to take one of a query's rows.
int64_t WorkOfRow(const MaxSim& pair) { return 1 + pair.products() / kProductsOfByte; }

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

// Returns how a text of a pair is read, by a late-interaction model, as this task's with its
// prompt.
std::shared_ptr<const TextReading> ReadAs(const ServedModel& model, TextTask task,
                                          const std::string& prompt) {
  const auto found = model.prompts.find(prompt);
  return std::make_shared<const TextReading>(
      TextReading{.task = task,
                  .prompt = found == model.prompts.end() ? "" : found->second,
                  .most_tokens = MostTextTokens(model, task)});
}

absl::Status NotFinite() {
  return absl::OutOfRangeError("a score is not finite; so it is with weights that overflow");
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
  if (query->raw_scores || values || compares) return scores;
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
  threads_ = &service.tokenizers;
  std::string name = query_->model;
  for (const ModelKind kind : {ModelKind::kClassifier, ModelKind::kReranker}) {
    const bool fits = kind == ModelKind::kReranker || !query_->ranks;
    if (name.empty() && fits) name = OnlyModelOf(service, *context_.caller, kind);
  }
  if (name.empty() && query_->ranks) name = OnlyLateModelOf(service, *context_.caller);
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
  classified_.compares = info.labels == nullptr;
  mean_ = classified_.compares && model.late_texts->mean();
  // Results that are rows are many times a score's answer, for which there is room with its item.
  if (!classified_.compares) AnswerTakes(AnswerBytes(*info.labels));
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
  if (classified_.compares) return ReadApart(work);
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

absl::Status ClassifyRequestState::ReadApart(Tokenization& work) {
  const ServedModel& model = *work.model;
  const auto as_query =
      ReadAs(model, TextTask::kQuery, prompt_name_.empty() ? "query" : prompt_name_);
  const auto as_document = ReadAs(model, TextTask::kDocument, "document");
  std::map<std::pair<size_t, TextTask>, size_t> places;
  const auto place_of = [&](size_t text, const std::shared_ptr<const TextReading>& reading) {
    const auto [place, is_new] = places.try_emplace({text, reading->task}, work.items.size());
    if (is_new) {
      work.texts.push_back(
          {.item = work.items.size(), .text = query_->texts[text], .reading = reading});
      work.items.emplace_back(Item());
    }
    return place->second;
  };
  for (const auto& [text, second] : query_->sequences) {
    const size_t query = place_of(text, as_query);
    pairs_.push_back({query, place_of(*second, as_document)});
  }
  // There is room for as many items as pairs already.
  return ReserveItems(model, work.items.size() - std::min(work.items.size(), pairs_.size()));
}

void ClassifyRequestState::BeginComparing(std::vector<ItemResult> results) {
  StepJob job{.caller = context_.caller->name(),
              .work = WorkLeft(results),
              .deadline = context_.deadline,
              .step = nullptr};
  job.step = [self = std::static_pointer_cast<ClassifyRequestState>(shared_from_this()),
              rows = std::move(results)] { return self->Compare(rows); };
  threads_->Run(std::move(job));
}

int64_t ClassifyRequestState::Compare(const std::vector<ItemResult>& results) {
  int64_t left = 0;
  const absl::Status status = Guarded("the scores", [&]() -> absl::Status {
    if (CallerLeft()) return absl::CancelledError("the caller left");
    for (int64_t work = 0; work < kComparedPerTurn && NextPair(results);) {
      work += WorkOfRow(*comparing_);
      if (!comparing_->done()) comparing_->Advance();
      if (!comparing_->done()) continue;
      if (absl::Status scored = TakeScore(results); !scored.ok()) return scored;
    }
    left = WorkLeft(results);
    if (left == 0) Finish();
    return absl::OkStatus();
  });
  if (status.ok()) return left;
  Refuse(status);
  return 0;
}

bool ClassifyRequestState::NextPair(const std::vector<ItemResult>& results) {
  const size_t next = classified_.logits.size();
  if (next < pairs_.size() && !comparing_) {
    const auto rows = [&](size_t item) { return results[item].outputs.begin()->second; };
    comparing_.emplace(rows(pairs_[next].query), rows(pairs_[next].document));
  }
  return next < pairs_.size();
}

absl::Status ClassifyRequestState::TakeScore(const std::vector<ItemResult>& results) {
  const size_t query = pairs_[classified_.logits.size()].query;
  float score = comparing_->score();
  comparing_.reset();
  if (mean_) {
    const int64_t rows = results[query].outputs.begin()->second.shape()[0];
    score /= static_cast<float>(std::max<int64_t>(1, rows));
  }
  if (!std::isfinite(score)) return NotFinite();
  classified_.logits.push_back({score});
  return absl::OkStatus();
}

int64_t ClassifyRequestState::WorkLeft(const std::vector<ItemResult>& results) {
  if (!NextPair(results)) return 0;
  const int64_t pairs = std::ssize(pairs_) - std::ssize(classified_.logits);
  return pairs * std::max<int64_t>(1, comparing_->rows_left()) * WorkOfRow(*comparing_);
}

// The query of a ranking is behind its texts, and texts that are in several pairs are read once.
std::string ClassifyRequestState::NameOf(size_t item) const {
  for (const auto member : {&Compared::document, &Compared::query}) {
    if (member == &Compared::query && query_->ranks) return "the query: ";
    const auto found = std::find_if(pairs_.begin(), pairs_.end(),
                                    [&](const Compared& pair) { return pair.*member == item; });
    if (found != pairs_.end()) {
      return WholeRequestState::NameOf(static_cast<size_t>(found - pairs_.begin()));
    }
  }
  return WholeRequestState::NameOf(item);
}

absl::Status ClassifyRequestState::Answer(std::vector<ItemResult> results, const Timing& last) {
  classified_.timing = last;
  computed_ = results.size();
  for (const ItemResult& result : results) classified_.tokens += result.tokens;
  if (classified_.compares) {
    BeginComparing(std::move(results));
    return absl::OkStatus();
  }
  for (const ItemResult& result : results) {
    const Tensor& logits = result.outputs.begin()->second;
    if (FindNonfinite(logits)) return NotFinite();
    classified_.logits.emplace_back(logits.data<float>(), logits.data<float>() + logits.elements());
  }
  Finish();
  return absl::OkStatus();
}

void ClassifyRequestState::Finish() {
  classified_.query = query_;
  classified_.sending = UntilSent();
  Succeeded(classified_.timing, computed_);
  done_(std::move(classified_));
}

}  // namespace linserve
