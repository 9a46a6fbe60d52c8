#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/session_state.h"
#include "core/tensor/tensor.h"
#include "core/threads/guarded.h"

namespace linserve {

// Says how the rows of a sequence become one vector. kCls is the first row, kLast the last one.
enum class Pooling : uint8_t { kNone, kMean, kCls, kLast, kMax };

// Says what a caller wants back of a sequence.
struct OutputOptions {
  std::vector<std::string> outputs;  // empty: the model's default output
  Pooling pooling = Pooling::kNone;
  bool normalize = false;  // each resulting row (or the pooled vector) is divided by its 2-norm
  DType dtype = DType::kF32;

  bool operator==(const OutputOptions&) const = default;
};

struct ItemResult;

// Goes on with a session by itself, on the worker that has computed its chunk.
class Continuation {
 public:
  virtual ~Continuation() = default;

  // Returns the rows that come with the sequence, of which the first chunk may have a part only.
  virtual int64_t Rows() const = 0;

  // Returns the inputs of the session's next chunk, which is computed with the same options;
  // nullopt if `result` is for the caller. Must not block.
  virtual std::optional<TensorMap> Next(const ItemResult& result) = 0;
};

// Holds one sequence: one tensor per input name, without a batch axis.
struct Item {
  TensorMap inputs;
  OutputOptions options;
  std::shared_ptr<const SessionChunk> chunk{};  // what it is in its session; null: a whole sequence
  std::shared_ptr<SessionState> session{};      // the state that the engine finds for the chunk
  std::shared_ptr<Continuation> then{};         // takes the chunk's result; null: the caller does
  bool report_progress = false;                 // to the sink, where the computation takes long
  // Says why a chunk that was faulty on the wire cannot be computed: those behind it have to know
  // of it.
  absl::Status fault{};
};

// Says how far the forward pass is that a sequence is computed in.
struct ItemProgress {
  int64_t layers_done = 0;
  int64_t layers = 0;
  int64_t rows_done = 0;  // rows of the next layer
  int64_t rows = 0;
};

// Says where the time of a sequence went, and in what company it was computed.
struct Timing {
  std::chrono::nanoseconds queue{0};  // from acceptance until its batch was closed
  std::chrono::nanoseconds batch{0};  // from closing until the forward pass began: padding, packing
  std::chrono::nanoseconds compute{0};   // forward pass, pooling, hand-out
  std::chrono::nanoseconds copy_in{0};   // the part of `compute` before the forward pass
  std::chrono::nanoseconds copy_out{0};  // the part of `compute` after the forward pass
  int64_t batch_sequences = 0;
  int64_t batch_tokens = 0;  // rows computed, padding included
};

struct ItemResult {
  TensorMap outputs;   // rows of the sequence's own length, or one pooled vector
  int64_t tokens = 0;  // the sequence's true length
  Timing timing{};
  int64_t position = 0;   // for a chunk: rows that its session has read by now
  std::string session{};  // for a chunk: the saved session, if that was asked for
};

// Takes the results of one request. Thread-safe.
class ResultSink {
 public:
  virtual ~ResultSink() = default;

  // Called exactly once for each sequence of the request, from any thread. Must not block.
  virtual void Deliver(size_t index, absl::StatusOr<ItemResult> result) = 0;

  // Called for a sequence that asks for it, before its result. Must not block.
  virtual void Report(size_t /*index*/, const ItemProgress& /*progress*/) {}

  // Returns true once nobody waits for the results any more, so that they need not be computed.
  virtual bool Abandoned() const = 0;
};

// Holds the right and the duty to answer one sequence, and delivers exactly once. A Delivery that
// is destroyed unanswered delivers INTERNAL, so that a fault of ours never leaves a caller waiting.
class Delivery {
 public:
  Delivery(std::shared_ptr<ResultSink> sink, size_t index)
      : sink_(std::move(sink)), index_(index) {}
  Delivery(Delivery&&) = default;
  Delivery& operator=(Delivery&& other) noexcept {
    std::swap(sink_, other.sink_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~Delivery() {
    if (sink_ == nullptr) return;
    RunGuarded("an answer",
               [this] { Complete(absl::InternalError("the sequence was dropped by the server")); });
  }

  // What the sink throws is reported, and lost: whoever answers one sequence has others to answer.
  void Complete(absl::StatusOr<ItemResult> result) noexcept {
    const auto sink = std::exchange(sink_, nullptr);
    if (sink == nullptr) return;
    RunGuarded("an answer", [&] { sink->Deliver(index_, std::move(result)); });
  }

  // Gives the duty back where the caller answers by other means, as when admission refused the
  // request.
  void Release() { sink_.reset(); }

  // Returns whether the duty to answer is here still.
  bool owes() const { return sink_ != nullptr; }

  bool Abandoned() const { return sink_->Abandoned(); }
  void Report(const ItemProgress& progress) const { sink_->Report(index_, progress); }

 private:
  std::shared_ptr<ResultSink> sink_;
  size_t index_;
};

}  // namespace linserve
