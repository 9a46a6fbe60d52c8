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
#include "core/threads/step_pool.h"
#include "serving/requests/embeddings_request.h"
#include "serving/requests/max_sim.h"
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
  bool compares = false;  // the logits are scores of late interaction, which stay as they are
  // One for each label, of each sequence, as the model gives them. They say which are higher, where
  // what is made of them may be the same.
  std::vector<std::vector<float>> logits;
  int64_t tokens = 0;                // tokens of all sequences
  Timing timing;                     // that of the sequence that was computed last
  std::shared_ptr<Sending> sending;  // held until the scores are sent
};

// Computes how likely the classes of a model are for texts and pairs of texts. Pairs of a
// late-interaction model are ranked by how near the rows of the one are to those of the other,
// which is found on the threads that tokenize. There is room for the answer's text until that is
// sent.
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
  // Reads each text of the pairs once for what it is in them.
  absl::Status ReadApart(Tokenization& work);
  absl::Status Answer(std::vector<ItemResult> results, const Timing& last) override;
  void AnswerRefusal(const absl::Status& status) override { done_(status); }
  void BeginComparing(std::vector<ItemResult> results);
  // Compares some more of the pairs; returns how much work is left.
  int64_t Compare(const std::vector<ItemResult>& results);
  // Begins with the next pair, unless one is begun. Returns false if none is left.
  bool NextPair(const std::vector<ItemResult>& results);
  // Takes the score of the pair that is done.
  absl::Status TakeScore(const std::vector<ItemResult>& results);
  // Returns how much work is left, as far as the next pair tells it.
  int64_t WorkLeft(const std::vector<ItemResult>& results);
  std::string NameOf(size_t item) const override;
  void Finish();

  // Is a pair of a late-interaction model, by the places of its texts among the items.
  struct Compared {
    size_t query = 0;
    size_t document = 0;
  };

  const Done done_;
  std::shared_ptr<const ClassifyQuery> query_;
  Classified classified_;
  StepPool* threads_ = nullptr;  // of the server
  std::vector<Compared> pairs_;
  std::optional<MaxSim> comparing_;  // the pair behind those that have a score
  size_t computed_ = 0;              // sequences
  bool mean_ = false;                // a score is divided by the number of the query's rows
};

}  // namespace linserve
