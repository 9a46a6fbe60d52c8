#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "batching/inflight.h"
#include "core/item.h"
#include "rpc/call_context.h"
#include "rpc/outbox.h"
#include "rpc/received.h"
#include "rpc/result_chunker.h"
#include "rpc/service_context.h"
#include "rpc/upload.h"
#include "telemetry/metrics.h"

namespace linserve {

// The side of a call that its requests need. Kept alive by each of them.
struct CallSide {
  std::shared_ptr<void> call;
  Outbox* outbox = nullptr;
  RpcMetrics* metrics = nullptr;
  // Answers a request that failed as a whole; what the answer keeps alive is the request.
  std::function<void(const absl::Status&, std::shared_ptr<void>)> refuse;
  // Before the last answer of the request is handed over; optional.
  std::function<void()> answered;
  std::function<void()> finished;  // once the last answer of the request is written or dropped
};

// One request of a call, from its submission to the end of its last answer: the sink of its
// results. Lives as long as the engine or an unwritten answer needs it; its end is the request's.
class EmbedRequestState : public ResultSink,
                          public std::enable_shared_from_this<EmbedRequestState> {
 public:
  EmbedRequestState(CallSide side, RequestContext context);
  ~EmbedRequestState() override;

  // Finds the model, converts the sequences and hands them to the engine: texts make that go on
  // after the return. A fault of the request refuses it; those of single sequences are delivered as
  // their results.
  // `upload`: of a request whose sequence came in parts, which are complete.
  void Submit(ServiceContext& service, Received<v1::EmbedRequest> request,
              Upload* upload = nullptr);

  // The request failed as a whole.
  void Refuse(const absl::Status& status);

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override;
  void Report(size_t index, const ItemProgress& progress) override;
  bool Abandoned() const override { return side_.outbox->cancelled(); }

 private:
  absl::Status Begin(ServiceContext& service, Received<v1::EmbedRequest> received, Upload* upload);
  absl::Status Enqueue(const ServedModel& model, Request request);
  std::chrono::nanoseconds Age() const;  // since its arrival
  void CountForStatistics(const absl::StatusOr<ItemResult>& last);

  CallSide side_;
  ChunkOptions chunks_;
  RequestContext context_;
  Inflight::Reservation place_;
  absl::Status status_;
  // Of the model, which the request must not own: the engine owns the request until it is answered,
  // and the worker that answers last would have to end itself.
  std::string model_name_;
  ModelMetrics* model_metrics_ = nullptr;
  std::vector<std::string> sequence_ids_;
  std::atomic<size_t> unanswered_ = 0;  // sequences
  std::atomic<size_t> computed_ = 0;
  std::atomic<bool> responded_ = false;
  std::atomic<bool> progress_unsent_ = false;
};

}  // namespace linserve
