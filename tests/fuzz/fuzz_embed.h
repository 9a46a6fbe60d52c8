#pragma once

#include <future>
#include <memory>
#include <utility>

#include "fuzz/fuzz_server.h"
#include "rpc/embedding/embed_request.h"

namespace linserve {

// Makes a call whose caller reads all at once.
struct FuzzCall {
  explicit FuzzCall(RpcMetrics& metrics)
      : outbox(
            {[this](const grpc::ByteBuffer*) { outbox.Written(true); }, [](const grpc::Status&) {}},
            metrics) {}

  Outbox outbox;
};

// Sends the request to the server, and returns what tells of its end.
inline std::future<void> FuzzEmbed(Received<v1::EmbedRequest> request) {
  ServiceContext& server = FuzzServer();
  RpcMetrics& metrics = server.metrics.ForRpc("Embed");
  const auto call = std::make_shared<FuzzCall>(metrics);
  const auto ended = std::make_shared<std::promise<void>>();
  std::make_shared<EmbedRequestState>(
      CallSide{.call = call,
               .metrics = metrics,
               .abandoned = [] { return false; },
               .ended = [ended](const absl::Status&) { ended->set_value(); }},
      EmbedRequestState::Output{.outbox = call->outbox},
      RequestContext{.id = "id", .caller = FuzzCaller()})
      ->Submit(server, std::move(request));
  return ended->get_future();
}

}  // namespace linserve
