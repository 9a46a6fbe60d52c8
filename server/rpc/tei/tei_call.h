#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "rpc/calls/answer_order.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"
#include "rpc/calls/stream_call.h"
#include "rpc/calls/unary_call.h"
#include "rpc/tei/tei_request.h"

namespace linserve {

// Returns the model that the header linserve-model names; "" without it.
std::string TeiModelOf(const grpc::ServerContextBase& context);

// Handles one unary call of TEI's.
template <typename Request>
class TeiCall : public UnaryCall {
 public:
  TeiCall(ServiceContext& service, grpc::CallbackServerContext* context, const std::string& rpc,
          grpc::ByteBuffer* response)
      : UnaryCall(service, context, rpc, response) {}

 private:
  void Handle(grpc::ByteBuffer& bytes) override {
    Received<Request> request;
    auto [context, status] = Receive(service_, *context_, bytes, kNoId, request);
    context.id = RequestIdOf(*context_, "");
    BeginTei(service_, {Side(), std::move(context), TeiModelOf(*context_), status},
             std::move(request),
             [this, self = shared_from_this()](absl::StatusOr<TeiResponse> made) {
               if (!made.ok()) return End(made.status());
               Respond(std::move(made->message).Take(), std::move(made->sending));
             });
  }
};

// Sends the response to one request of a stream. Its destructor ends the request.
class TeiAnswer : public Answer {
 public:
  TeiAnswer(TeiResponse response, std::shared_ptr<void> in_flight)
      : response_(std::move(response)), in_flight_(std::move(in_flight)) {}

  bool Next(WireMessage& message) override {
    message = std::move(response_.message);
    return true;
  }

  void Failed(const absl::Status& fault) override { response_.sending->Failed(fault); }

 private:
  TeiResponse response_;
  const std::shared_ptr<void> in_flight_;
};

// Handles one stream of TEI's requests, which are answered in their order. The first that fails
// ends the stream.
template <typename Request>
class TeiStreamCall : public StreamCall {
 public:
  TeiStreamCall(ServiceContext& service, grpc::CallbackServerContext* context,
                const std::string& rpc)
      : StreamCall(service, context, rpc), order_(outbox_, /*ordered=*/true) {}

 private:
  absl::Status Handle(grpc::ByteBuffer& bytes) override {
    Received<Request> request;
    auto [context, status] = Receive(service_, *context_, bytes, kNoId, request);
    if (context.caller == nullptr) return status;
    context.id = RequestIdOr("");
    const int64_t number = requests_++;
    // Every answer keeps this alive, and the request itself does until it has one.
    const std::shared_ptr<void> in_flight(
        nullptr, [this, self = shared_from_this()](void*) { RequestFinished(); });
    CallSide side{.call = in_flight,
                  .metrics = metrics_,
                  .abandoned = [this] { return order_.ended() || outbox_.cancelled(); },
                  .broken = [this](const absl::Status& fault) { Abort(fault); }};
    BeginTei(
        service_, {std::move(side), std::move(context), TeiModelOf(*context_), status},
        std::move(request), [this, number, in_flight](absl::StatusOr<TeiResponse> made) {
          Guard([&] {
            if (!made.ok()) return order_.Send(number, {nullptr, ToGrpcStatus(made.status())});
            order_.Send(number, {std::make_unique<TeiAnswer>(*std::move(made), in_flight), {}});
          });
        });
    return absl::OkStatus();
  }

  int64_t requests_ = 0;  // requests read so far
  AnswerOrder order_;
};

}  // namespace linserve
