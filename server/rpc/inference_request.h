#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "batching/inflight.h"
#include "core/item.h"
#include "core/mutex.h"
#include "engine/repository.h"
#include "inference/grpc_service.pb.h"
#include "rpc/call_context.h"
#include "rpc/infer_answer.h"
#include "rpc/inference_parameters.h"
#include "rpc/received.h"
#include "rpc/service_context.h"
#include "rpc/tokenization.h"
#include "telemetry/metrics.h"

namespace linserve {

// One ModelInferRequest, from its submission to its answer: a whole batch, cut into sequences as
// `linserve run` cuts a file, which the engine computes in whatever company, and joined again. The
// first fault of a sequence is the request's, and what of it is still queued is dropped.
class InferRequestState : public ResultSink,
                          public std::enable_shared_from_this<InferRequestState> {
 public:
  // What the request needs of its call.
  struct CallSide {
    RpcMetrics& metrics;
    bool chunks = false;  // can send an answer in parts
    // Called exactly once, on any thread.
    std::function<void(absl::StatusOr<InferAnswer>)> done;
    std::function<bool()> abandoned;  // whether the caller has left
  };

  InferRequestState(CallSide call, RequestContext context);
  ~InferRequestState() override;

  // Takes the message over, to be answered.
  void Submit(ServiceContext& service, Received<inference::ModelInferRequest> request);

  // Answers that the request failed before an engine had it.
  void Refuse(const absl::Status& status);

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override;
  bool Abandoned() const override;

 private:
  using Message = std::shared_ptr<const inference::ModelInferRequest>;

  absl::Status Begin(ServiceContext& service, Received<inference::ModelInferRequest> request);
  absl::Status ReadOptions(const ServedModel& model, const inference::ModelInferRequest& message);
  absl::StatusOr<std::vector<Item>> Items(const std::string& model, const Message& message,
                                          const LargeFields& large);
  absl::Status ReadTexts(const Message& message, Tokenization& texts) const;
  absl::Status CheckCount(size_t sequences, const RpcLimits& limits) const;
  absl::Status CheckChunks(size_t sequences) const;
  absl::Status AddSession(const ModelInfo& info, const inference::ModelInferRequest& message,
                          std::vector<absl::StatusOr<Item>>& items);
  absl::Status Enqueue(const ServedModel& model, std::vector<absl::StatusOr<Item>> items);
  absl::StatusOr<InferAnswer> AnswerWith(const std::vector<TensorMap>& outputs,
                                         const std::vector<int64_t>& tokens) const;
  std::chrono::nanoseconds Age() const { return std::chrono::steady_clock::now() - context_.begin; }

  const CallSide call_;
  RequestContext context_;

  // Set by Submit(), before the engine has the sequences.
  Inflight::Reservation place_;
  InferAnswer answer_;                     // but for its parts
  const Signature* signature_ = nullptr;   // of the engine, which outlives what it delivers
  ModelStatistics* statistics_ = nullptr;  // likewise
  InferOptions options_;
  std::map<char, int64_t> padded_;
  int64_t max_bytes_ = 0;  // of an answer

  mutable Mutex mutex_;
  std::vector<TensorMap> outputs_ LINSERVE_GUARDED_BY(mutex_);  // of each sequence
  std::vector<int64_t> tokens_ LINSERVE_GUARDED_BY(mutex_);     // likewise
  size_t sequences_ LINSERVE_GUARDED_BY(mutex_) = 0;
  size_t unanswered_ LINSERVE_GUARDED_BY(mutex_) = 0;
  bool answered_ LINSERVE_GUARDED_BY(mutex_) = false;
  absl::Status status_ LINSERVE_GUARDED_BY(mutex_);
};

}  // namespace linserve
