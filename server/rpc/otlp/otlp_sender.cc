#include "rpc/otlp/otlp_sender.h"

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/strings/utf8.h"
#include "core/system/loopback.h"
#include "core/threads/mutex.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "rpc/otlp/otlp_spans.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

using otlp::ExportTraceServiceResponse;
using otlp::TraceService;

grpc::ChannelArguments ArgumentsFor(const std::string& target) {
  grpc::ChannelArguments arguments;
  // gRPC would ask the proxy that http_proxy names even for a collector on this machine.
  if (IsLoopbackTarget(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

class OtlpSender : public SpanSender {
 public:
  OtlpSender(const CollectorAddress& address, Resource resource)
      : resource_(std::move(resource)),
        stub_(TraceService::NewStub(grpc::CreateCustomChannel(
            address.target,
            address.tls ? grpc::SslCredentials({}) : grpc::InsecureChannelCredentials(),
            ArgumentsFor(address.target)))) {}

  absl::Status Send(const std::vector<EndedSpan>& spans, TraceTime deadline) override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         (deadline - std::chrono::steady_clock::now()));
    if (!Begin(&context)) return absl::CancelledError("the server ends");
    ExportTraceServiceResponse response;
    const grpc::Status status = stub_->Export(&context, ToOtlp(spans, resource_), &response);
    Begin(nullptr);
    if (!status.ok()) {
      return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
    }
    if (const int64_t rejected = response.partial_success().rejected_spans(); rejected > 0) {
      constexpr size_t kLongestError = 1024;
      Log(LogLevel::kWarning, "spans are rejected",
          {{"spans", rejected},
           {"error", std::string(CutAtCharacter(response.partial_success().error_message(),
                                                kLongestError))}});
    }
    return absl::OkStatus();
  }

  void Cancel() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }

 private:
  // Makes the call one that is cancelled; false if all are.
  bool Begin(grpc::ClientContext* call) {
    const MutexLock lock(mutex_);
    call_ = call;
    return !cancelled_;
  }

  const Resource resource_;
  const std::unique_ptr<TraceService::Stub> stub_;
  Mutex mutex_;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // under way
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<SpanSender> MakeOtlpSender(const CollectorAddress& address, Resource resource) {
  return std::make_unique<OtlpSender>(address, std::move(resource));
}

}  // namespace linserve
