#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/item.h"
#include "core/threads/mutex.h"
#include "engine/generation/generation.h"
#include "linserve/v1/embedding.pb.h"
#include "rpc/calls/outbox.h"
#include "rpc/calls/received.h"
#include "serving/request.h"
#include "text/text_stream.h"

namespace linserve {

// Represents one GenerateRequest: its tokens are sent as they come, those that a slow reader has
// not read together, and a last message after them.
class GenerateRequestState : public RequestState {
 public:
  // Makes the state of a request. A refused one ends the call.
  GenerateRequestState(CallSide call, Outbox& outbox, RequestContext context)
      : RequestState(std::move(call), std::move(context)), outbox_(outbox) {}

  void Submit(ServiceContext& service, Received<v1::GenerateRequest> request);

 private:
  void TakeResult(size_t index, absl::StatusOr<ItemResult> result) override;
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::Status Prepare(const ServedModel& model, std::vector<absl::StatusOr<Item>>& items) override;
  void AnswerRefusal(const absl::Status& status) override;
  class Tokens;
  absl::Status Send(int64_t token);
  std::shared_ptr<Generation> TakeGeneration();
  v1::GenerateResponse TakeUnsent();

  Outbox& outbox_;
  std::shared_ptr<const v1::GenerateRequest> message_;  // while it is read
  GenerationOptions options_;
  // The request may be answered, as by its deadline, while a worker has its next token.
  Mutex mutex_;
  // It holds this request, too. Null: the request is answered.
  std::shared_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);
  int64_t prompt_tokens_ = 0;
  bool from_text_ = false;
  std::optional<TextStream> text_;  // only for models with a tokenizer
  std::deque<v1::GenerateResponse> unsent_ ABSL_GUARDED_BY(mutex_);
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;  // messages that the place has room for
};

}  // namespace linserve
