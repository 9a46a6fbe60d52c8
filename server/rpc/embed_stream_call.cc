#include "rpc/embed_stream_call.h"

#include <memory>
#include <utility>

#include "core/quote.h"
#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/embed_request.h"
#include "rpc/wire.h"

namespace linserve {

absl::Status EmbedStreamCall::Handle(grpc::ByteBuffer& bytes) {
  const auto caller = CallerOf(*context_, *service_.access);
  if (!caller.ok()) return caller.status();
  const auto size = static_cast<int64_t>(bytes.Length());
  v1::EmbedRequest request;
  if (absl::Status parsed = Parse(bytes, request); !parsed.ok()) return parsed;
  const std::string id = request.request_id();
  bool duplicate = false;
  {
    MutexLock lock(ids_mutex_);
    duplicate = !ids_.insert(id).second;
  }
  // Captures no reference to the call: the state's own keeps it alive until this has run.
  // The id is free before the caller can have read the last answer, and use it again.
  const CallSide side{
      .call = shared_from_this(),
      .outbox = &outbox_,
      .metrics = &metrics_,
      .refuse =
          [this, id](const absl::Status& fault, std::shared_ptr<void> keep_alive) {
            outbox_.Push(ResultChunker::RequestFailed(id, fault, std::move(keep_alive)));
          },
      .answered =
          [this, id, duplicate] {
            MutexLock lock(ids_mutex_);
            if (!duplicate) ids_.erase(id);
          },
      .finished = [this] { RequestFinished(); }};
  const auto state = std::make_shared<EmbedRequestState>(
      side, RequestContext{id, DeadlineOf(*context_), *caller, TraceIdOf(*context_)});
  absl::Status status = AdmitCaller(service_, **caller, size);
  if (duplicate) {
    status.Update(absl::InvalidArgumentError("request_id " + Quoted(id) +
                                             " is in flight on this stream already"));
  }
  if (status.ok()) {
    state->Submit(service_, std::move(request));
  } else {
    state->Refuse(status);
  }
  return absl::OkStatus();
}

}  // namespace linserve
