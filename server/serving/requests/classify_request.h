#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"
#include "serving/requests/embeddings_request.h"
#include "serving/requests/whole_request.h"

namespace linserve {

// Holds what the APIs for classifiers and re-rankers ask for.
struct ClassifyQuery {
  // Is a text, or two that are read together, by their places in `texts`.
  struct Sequence {
    size_t text = 0;
    std::optional<size_t> second{};
  };

  std::string model;  // "": the only model
  Texts texts{};
  std::vector<Sequence> sequences{};
  std::string prompt_name{};     // of the model's prompt before each first text; "": its default
  bool ranks = false;            // the sequences, by the one score that the model gives each
  bool raw_scores = false;       // as the model gives them
  AskedTruncation truncation{};  // of what is too long
  bool echoes_texts = false;     // in the answer

  // Pairs a question with each of the texts, before which it is read.
  void RankAll(std::string question);
};

// Holds the classes of each sequence of a query.
struct Classified {
  // Returns the scores that are asked for of a sequence, one for each label.
  std::vector<float> Scores(size_t sequence) const;
  // Returns the places of a sequence's labels, that of the highest score first.
  std::vector<size_t> BestFirst(size_t sequence) const;
  // Returns the places of the sequences, that of the highest first score first.
  std::vector<size_t> Ranking() const;

  std::string model;
  std::shared_ptr<const ClassifyQuery> query;
  std::shared_ptr<const std::vector<std::string>> labels;  // of the model
  ProblemType problem_type = ProblemType::kSingleLabel;
  // One for each label, of each sequence, as the model gives them. They say which are higher, where
  // what is made of them may be the same.
  std::vector<std::vector<float>> logits;
  int64_t tokens = 0;                // tokens of all sequences
  Timing timing;                     // that of the sequence that was computed last
  std::shared_ptr<Sending> sending;  // held until the scores are sent
};

// Computes how likely the classes of a model are for texts and pairs of texts. There is room for
// the answer's text until that is sent.
class ClassifyRequestState : public WholeRequestState {
 public:
  using Query = ClassifyQuery;
  using Answered = Classified;
  // Called exactly once, on any thread. Must not throw.
  using Done = std::function<void(absl::StatusOr<Classified>)>;

  ClassifyRequestState(CallSide call, RequestContext context, Done done)
      : WholeRequestState(std::move(call), std::move(context)), done_(std::move(done)) {}

  // Takes a place over that was reserved for a message of so many bytes; without one, it is
  // reserved now.
  void Submit(ServiceContext& service, ClassifyQuery query,
              std::optional<Inflight::Reservation> place = std::nullopt);

 private:
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::Status Answer(std::vector<ItemResult> results, const Timing& last) override;
  void AnswerRefusal(const absl::Status& status) override { done_(status); }

  const Done done_;
  std::shared_ptr<const ClassifyQuery> query_;
  Classified classified_;
};

}  // namespace linserve
