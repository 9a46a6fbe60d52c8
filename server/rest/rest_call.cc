#include "rest/rest_call.h"

#include <cstdint>

#include "serving/admission.h"

namespace linserve {

absl::Status Admit(const RestCall& call) {
  return AdmitCaller(call.service, *call.caller, static_cast<int64_t>(call.http.body.size()));
}

JsonReader::GoOn WantedBy(const RestCall& call) {
  return [&call]() -> absl::Status {
    if (call.http.abandoned()) return absl::CancelledError("the caller left");
    if (call.service.draining) return absl::UnavailableError("the server is draining");
    return absl::OkStatus();
  };
}

RequestContext ContextOf(const RestCall& call, const std::string& given) {
  const std::string header = call.http.Header("x-request-id");
  const bool usable = !header.empty() && header.size() <= kMaxIdBytes;
  return {.id = RequestIdOr(usable ? header : given),
          .caller = call.caller,
          .trace_id = TraceIdOf(call.http.Header("traceparent")),
          .begin = call.begin};
}

CallSide SideOf(const RestCall& call, const std::string& rpc) {
  return {.call = nullptr,
          .metrics = call.service.metrics.ForRpc(rpc),
          .abandoned = call.http.abandoned};
}

}  // namespace linserve
