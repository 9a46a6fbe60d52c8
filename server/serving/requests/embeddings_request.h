#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"
#include "core/tensor/tensor.h"
#include "serving/requests/whole_request.h"

namespace linserve {

// Holds the sequences of a call: texts, or token ids.
using Texts = std::vector<std::string>;
using IdSequences = std::vector<std::vector<int64_t>>;
using SequenceInput = std::variant<Texts, IdSequences>;

// Holds what the embedding APIs ask for, each in its own words.
struct EmbeddingsQuery {
  std::string model;  // "": the only model
  SequenceInput sequences{};
  bool all_rows = false;  // every row of a sequence, or one vector of it
  bool sparse = false;    // that vector has a weight for each word of the model's vocabulary
  bool normalize = true;
  int64_t dimensions = 0;              // of each vector; 0: all that the model gives
  AskedTruncation truncation{};        // of sequences that are too long
  int64_t most_tokens = 0;             // of a truncated sequence; 0: as many as the model takes
  std::string prompt_name{};           // of the model's prompt before each text; "": none
  int64_t answer_bytes = 1;            // that a byte of the results becomes in the answer
  std::string cause_of_foreign_ids{};  // of this API's callers, for the error that names such ids
};

struct Embeddings {
  std::string model;
  int64_t tokens = 0;           // tokens of all sequences
  std::vector<Tensor> vectors;  // one for each sequence, F32 [width], or with all rows [n, width]
  Timing timing;                // that of the sequence that was computed last
  std::shared_ptr<Sending> sending;  // held until the vectors are sent
};

// Returns how a sequence becomes one vector: as the model is served, by the mean if it is not
// pooled.
Pooling PoolingOf(const ServedModel& model);

// Computes the vectors that an embedding API asks for. There is room for their text in an answer
// until that is sent.
class EmbeddingsRequestState : public WholeRequestState {
 public:
  using Query = EmbeddingsQuery;
  using Answered = Embeddings;
  // Called exactly once, on any thread. Must not throw.
  using Done = std::function<void(absl::StatusOr<Embeddings>)>;

  EmbeddingsRequestState(CallSide call, RequestContext context, Done done)
      : WholeRequestState(std::move(call), std::move(context)), done_(std::move(done)) {}

  // Takes a place over that was reserved for a message of so many bytes; without one, it is
  // reserved now.
  void Submit(ServiceContext& service, EmbeddingsQuery query,
              std::optional<Inflight::Reservation> place = std::nullopt);

 private:
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::Status ReadTexts(const Texts& given, Tokenization& work);
  absl::Status ReadIds(const IdSequences& sequences, Tokenization& work) const;
  absl::Status Answer(std::vector<ItemResult> results, const Timing& last) override;
  void AnswerRefusal(const absl::Status& status) override { done_(status); }

  const Done done_;
  // Keeps the texts alive, which are viewed until they are token ids, and the ids, which are viewed
  // until they are computed.
  std::shared_ptr<const EmbeddingsQuery> query_;
  int64_t dimensions_ = 0;
  OutputOptions options_;
  Embeddings embeddings_;
};

}  // namespace linserve
