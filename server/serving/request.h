#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "core/sequence/priority.h"
#include "repository/repository.h"
#include "serving/inflight.h"
#include "serving/request_context.h"
#include "serving/service_context.h"
#include "serving/tokenization.h"
#include "telemetry/metrics.h"

namespace linserve {

// Holds what a request needs of its call, whatever the protocol.
struct CallSide {
  std::shared_ptr<void> call;  // lives for as long as the request does
  RpcMetrics& metrics;
  std::function<bool()> abandoned;  // whether the caller has left
  // Called with how the request ended, after all else; may be empty.
  std::function<void(const absl::Status&)> ended{};
  // Called where an answer cannot be made, for want of memory: ends the call with the status,
  // whatever was answered. May be empty where a refusal needs no memory.
  std::function<void(const absl::Status&)> broken{};
};

class RequestState;

// Holds a request whose answer is made, until that is sent: so long the request lives, and its
// place is taken; and the trace shows how long that took.
class Sending {
 public:
  explicit Sending(std::shared_ptr<RequestState> request);

  // Says that the answer could not be written, with which the request ended.
  void Failed(const absl::Status& status);

 private:
  const std::shared_ptr<RequestState> request_;
  const std::shared_ptr<void> traced_;
};

// Represents one request from its arrival to the end of its last answer, whatever the protocol, and
// takes its results. It lives for as long as the engine or an unwritten answer needs it. When it
// ends the request has ended: then it is counted, logged and traced.
class RequestState : public ResultSink, public std::enable_shared_from_this<RequestState> {
 public:
  RequestState(CallSide call, RequestContext context);
  ~RequestState() override;

  // Says that each byte of the results becomes up to so many of an answer's text, beside which the
  // results are kept. Room is taken for both. Call it before the request is submitted.
  void AnswerTakes(int64_t text_bytes) { text_bytes_ = text_bytes; }

  // Answers that the request failed as a whole. Only the first call does anything.
  void Refuse(const absl::Status& status);

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) final;
  bool Abandoned() const override { return CallerLeft(); }

 protected:
  using FoundModel = absl::StatusOr<std::shared_ptr<const ServedModel>>;

  // Takes the result of one sequence. What it throws ends the call.
  virtual void TakeResult(size_t index, absl::StatusOr<ItemResult> result) = 0;

  // Reserves a place for a message of so many bytes, unless TakeOver() gave one, reads what is
  // asked of the model, and hands it to the engine. With texts, that goes on after the return. A
  // fault of the request refuses it; faults of single sequences are delivered as their results.
  void Submit(ServiceContext& service, const FoundModel& model, int64_t bytes);
  void TakeOver(Inflight::Reservation place) { place_ = std::move(place); }

  // Reads the options of a protocol's message, before ReadItems() is called. An error refuses the
  // request.
  virtual absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) = 0;
  // Calls ReserveItems(), then fills in items, texts, their owner and, where the request says more
  // than the model's default, truncation. An error refuses the request.
  virtual absl::Status ReadItems(Tokenization& work) = 0;
  // Prepares the items once texts are token ids. An error refuses the request.
  virtual absl::Status Prepare(const ServedModel& /*model*/,
                               std::vector<absl::StatusOr<Item>>& /*items*/) {
    return absl::OkStatus();
  }
  // Takes the items once texts are token ids: hands them to the engine, unless a request is
  // answered without it. An error refuses the request.
  virtual absl::Status Take(ServiceContext& service, const ServedModel& model,
                            std::vector<absl::StatusOr<Item>> items);
  // Answers that the request failed as a whole.
  virtual void AnswerRefusal(const absl::Status& status) = 0;

  // Count how the request ended, for the model's statistics; Refuse() counts by itself. `computed`
  // is the number of sequences, `timing` that of the last one.
  void Succeeded(const Timing& timing, size_t computed);
  void Failed();

  // Returns INVALID_ARGUMENT where a request holds no sequences or too many.
  static absl::Status CheckCount(int64_t sequences, const RpcLimits& limits);

  // Adds to the request's place what is made of so many sequences, besides their tensors.
  absl::Status ReserveItems(const ServedModel& model, size_t sequences);
  // Adds so many bytes to the request's place. With a model, a refusal says when to come back.
  absl::Status ReserveBytes(const ServedModel& model, int64_t bytes);
  absl::Status ReserveBytes(int64_t bytes) { return place_->Grow(bytes); }

  // Adds so many bytes of results, and what they become in an answer.
  absl::Status ReserveResultBytes(int64_t bytes) { return ReserveBytes((1 + text_bytes_) * bytes); }

  // Runs a part of the request's life on a thread of others. Its error, and what it throws, ends
  // the call.
  void Guard(absl::FunctionRef<absl::Status()> part);

  bool CallerLeft() const { return call_.abandoned(); }
  // Counts tokens that were computed for the request beside those of its results.
  void AlsoComputed(int64_t tokens) { tokens_ += tokens; }

  // Returns the time since the request's arrival.
  std::chrono::nanoseconds Age() const { return std::chrono::steady_clock::now() - context_.begin; }

  // Returns what an answer holds until it is sent.
  std::shared_ptr<Sending> UntilSent() { return std::make_shared<Sending>(shared_from_this()); }

  RpcMetrics& metrics() const { return call_.metrics; }
  ModelMetrics& model_metrics() const { return *model_metrics_; }  // REQUIRES: the model was found

  RequestContext context_;
  // Set once the request is answered as a whole: what its caller does from then on changes nothing.
  bool answered_ = false;
  bool computes_ = true;                   // or the tokenizer answers it, which is no inference
  Priority priority_ = Priority::kNormal;  // what the request asks for
  // Names the model's prompt that stands before each text; "": its default one. ReadOptions() sets
  // it.
  std::string prompt_name_;

 private:
  friend class Sending;

  void Conclude();
  absl::Status Begin(ServiceContext& service, const FoundModel& model, int64_t bytes);

  const CallSide call_;
  std::optional<Inflight::Reservation> place_;
  bool begun_ = false;  // it was submitted or refused
  std::atomic<bool> refused_ = false;
  std::atomic<bool> broken_ = false;
  absl::Status status_;
  // The model is kept by its name only. The request must not own it: the engine owns the request
  // until it is answered, and the worker that answers last would have to end itself.
  std::string model_name_;
  std::shared_ptr<ModelMetrics> model_metrics_;
  Metrics* metrics_ = nullptr;  // count the tokens of its caller, if that has a name
  size_t sequences_ = 0;
  std::atomic<int64_t> tokens_ = 0;
  // What one of its sequences took at most.
  std::atomic<std::chrono::nanoseconds> queue_{}, compute_{};
  std::atomic<size_t> faults_ = 0;  // sequences that failed by themselves
  absl::Status fault_;              // of the first of them
  int64_t text_bytes_ = 0;          // see AnswerTakes()
};

}  // namespace linserve
