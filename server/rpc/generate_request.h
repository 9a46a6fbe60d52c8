#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "batching/inflight.h"
#include "core/item.h"
#include "engine/generation.h"
#include "linserve/v1/embedding.pb.h"
#include "rpc/call_context.h"
#include "rpc/outbox.h"
#include "rpc/service_context.h"
#include "telemetry/metrics.h"
#include "text/text_stream.h"

namespace linserve {

// One GenerateRequest, from its submission to its last token: the sink of its result. Lives as long
// as the engine or an unwritten answer needs it.
class GenerateRequestState : public ResultSink,
                             public std::enable_shared_from_this<GenerateRequestState> {
 public:
  // What the request needs of its call, which `call` keeps alive.
  struct CallSide {
    std::shared_ptr<void> call;
    Outbox& outbox;
    RpcMetrics& metrics;
    std::function<void(const absl::Status&)> finish;  // called once
  };

  GenerateRequestState(CallSide side, RequestContext context);
  ~GenerateRequestState() override;

  void Submit(ServiceContext& service, v1::GenerateRequest message);
  void Refuse(const absl::Status& status);

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override;
  bool Abandoned() const override { return side_.outbox.cancelled(); }

 private:
  absl::Status Begin(ServiceContext& service, v1::GenerateRequest message);
  absl::Status Enqueue(const ServedModel& model, absl::StatusOr<Item> prompt,
                       GenerationOptions options, Priority priority);
  void Send(int64_t token);
  void Push(v1::GenerateResponse message);
  std::chrono::nanoseconds Age() const { return std::chrono::steady_clock::now() - context_.begin; }

  const CallSide side_;
  const RequestContext context_;
  Inflight::Reservation place_;
  absl::Status status_;
  std::string model_name_;
  ModelMetrics* model_metrics_ = nullptr;
  std::shared_ptr<Generation> generation_;
  int64_t prompt_tokens_ = 0;
  bool from_text_ = false;
  std::optional<TextStream> text_;  // of models with a tokenizer
};

}  // namespace linserve
