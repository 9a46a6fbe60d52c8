#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>

#include "fuzz/fuzz_server.h"
#include "rpc/embed_request.h"
#include "rpc/received.h"

namespace linserve {
namespace {

// A call whose caller reads all at once.
struct Call {
  explicit Call(RpcMetrics& metrics)
      : outbox(
            {[this](const grpc::ByteBuffer*) { outbox.Written(true); }, [](const grpc::Status&) {}},
            metrics) {}

  Outbox outbox;
};

void Ask(Received<v1::EmbedRequest> request) {
  ServiceContext& server = FuzzServer();
  RpcMetrics& metrics = server.metrics.ForRpc("Embed");
  const auto call = std::make_shared<Call>(metrics);
  const auto ended = std::make_shared<std::promise<void>>();
  const CallSide side{.call = call,
                      .outbox = &call->outbox,
                      .metrics = &metrics,
                      .refuse = [](const absl::Status&, const std::shared_ptr<void>&) {},
                      .answered = nullptr,
                      .finished = [ended] { ended->set_value(); }};
  std::make_shared<EmbedRequestState>(side, RequestContext{"id", TimePoint::max(), FuzzCaller()})
      ->Submit(server, std::move(request));
  ended->get_future().wait();
}

}  // namespace
}  // namespace linserve

// Whatever the bytes are, the request comes to its end.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  grpc::ByteBuffer bytes = linserve::InSlices(data, size);
  linserve::Received<linserve::v1::EmbedRequest> request;
  const bool parsed = linserve::Parse(bytes, request, /*least=*/1).ok();
  if (parsed != linserve::v1::EmbedRequest().ParseFromArray(data, static_cast<int>(size)))
    std::abort();
  if (parsed) linserve::Ask(std::move(request));
  return 0;
}
