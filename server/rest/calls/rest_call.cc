#include "rest/calls/rest_call.h"

#include <cstdint>

#include "core/status/draining.h"
#include "http/framing/grammar.h"
#include "serving/admission.h"

namespace linserve {

JsonReader::GoOn WantedBy(const RestCall& call) {
  return [&call]() -> absl::Status {
    if (call.http.abandoned()) return absl::CancelledError("the caller left");
    if (call.service.draining) return DrainingError();
    return absl::OkStatus();
  };
}

std::string RequestIdOf(const RestCall& call, const std::string& given) {
  const bool usable = !call.http.named && !given.empty() && IsFieldValue(given);
  return RequestIdOr(usable ? given : call.http.Header(kRequestId));
}

RequestContext ContextOf(const RestCall& call, const std::string& given) {
  return {.id = RequestIdOf(call, given),
          .caller = call.caller,
          .trace = ReadTraceparent(call.http.Header("traceparent")),
          .begin = call.begin,
          .body_bytes = call.body_bytes};
}

CallSide SideOf(const RestCall& call, const std::string& rpc) {
  return {.call = nullptr,
          .metrics = call.service.metrics.ForRpc(rpc),
          .abandoned = call.http.abandoned};
}

}  // namespace linserve
