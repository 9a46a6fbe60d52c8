#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/item.h"
#include "rpc/calls/outbox.h"
#include "rpc/calls/received.h"
#include "rpc/embedding/result_chunker.h"
#include "rpc/embedding/upload.h"
#include "serving/request.h"

namespace linserve {

// Represents one EmbedRequest: each of its sequences is answered as soon as it is computed.
class EmbedRequestState : public RequestState {
 public:
  // Says where its answers go.
  struct Output {
    Outbox& outbox;
    // Answers a request that failed as a whole; the answer keeps the request alive. If empty, the
    // call ends with the status.
    std::function<void(const absl::Status&, std::shared_ptr<void>)> refuse{};
    // Called before the last answer of the request is handed over; may be empty.
    std::function<void()> answered{};
  };

  EmbedRequestState(CallSide call, Output output, RequestContext context);

  void Submit(ServiceContext& service, Received<v1::EmbedRequest> request);
  // Submits a request whose sequence came in chunks, which are complete.
  void Submit(ServiceContext& service, v1::EmbedRequest request, Upload& upload);

  void Report(size_t index, const ItemProgress& progress) override;

 private:
  void TakeResult(size_t index, absl::StatusOr<ItemResult> result) override;
  void SendProgress(size_t index, const ItemProgress& progress);
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::StatusOr<Item> ReadItem(const v1::Sequence& sequence);
  void AnswerRefusal(const absl::Status& status) override;
  void CountForStatistics(const absl::StatusOr<ItemResult>& last);

  const Output output_;
  // Tensors and texts view the message's bytes, so it lives as long as any of them.
  std::shared_ptr<const v1::EmbedRequest> message_;
  std::optional<Tensor> rows_;  // rows of an upload
  OutputOptions options_;
  std::optional<Truncation> truncation_;
  ChunkOptions chunks_;
  std::vector<std::string> sequence_ids_;
  std::atomic<size_t> unanswered_ = 0;  // number of sequences
  std::atomic<size_t> computed_ = 0;
  std::atomic<bool> responded_ = false;
  std::atomic<bool> progress_unsent_ = false;
};

}  // namespace linserve
