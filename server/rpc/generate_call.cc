#include "rpc/generate_call.h"

#include <utility>

#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/generate_request.h"
#include "rpc/received.h"

namespace linserve {

void GenerateCall::Handle(grpc::ByteBuffer& bytes) {
  const TimePoint begin = std::chrono::steady_clock::now();
  const auto caller = CallerOf(*context_, *service_.access);
  absl::Status status = caller.status();
  if (status.ok()) {
    status = AdmitCaller(service_, **caller, static_cast<int64_t>(bytes.Length()));
  }
  v1::GenerateRequest request;
  if (status.ok()) status = Parse(bytes, request);
  const auto state = std::make_shared<GenerateRequestState>(
      GenerateRequestState::CallSide{shared_from_this(), outbox_, metrics_,
                                     [this](const absl::Status& fault) {
                                       if (fault.ok()) {
                                         outbox_.FinishWhenEmpty(grpc::Status::OK);
                                       } else {
                                         Refuse(fault);
                                       }
                                     }},
      RequestContext{RequestIdOf(*context_, request.request_id()), DeadlineOf(*context_),
                     caller.value_or(nullptr), TraceIdOf(*context_), begin});
  if (!status.ok()) return state->Refuse(status);
  state->Submit(service_, std::move(request));
}

}  // namespace linserve
