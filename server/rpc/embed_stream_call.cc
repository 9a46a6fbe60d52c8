#include "rpc/embed_stream_call.h"

#include <utility>
#include <vector>

#include "core/quote.h"
#include "rpc/call_context.h"

namespace linserve {

EmbedStreamCall* EmbedStreamCall::Start(ServiceContext& service, StreamRegistry& registry,
                                        grpc::CallbackServerContext* context) {
  auto call = std::make_shared<EmbedStreamCall>(service, registry, context);
  call->self_ = call;
  registry.Add(call);
  call->Read();
  if (service.draining) call->Drain();
  return call.get();
}

EmbedStreamCall::EmbedStreamCall(ServiceContext& service, StreamRegistry& registry,
                                 grpc::CallbackServerContext* context)
    : service_(service),
      registry_(registry),
      context_(context),
      metrics_(service.metrics.ForRpc("EmbedStream")),
      outbox_({[this](const v1::EmbedResponse* message) { StartWrite(message); },
               [this](const grpc::Status& status) { End(status); }},
              metrics_) {
  metrics_.StreamOpened();
}

void EmbedStreamCall::Drain() {
  const auto self = shared_from_this();
  {
    MutexLock lock(mutex_);
    draining_ = true;
  }
  FinishIfIdle();
}

void EmbedStreamCall::Read() {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    starting_read_ = true;
  }
  incoming_.Clear();
  StartRead(&incoming_);
  std::optional<grpc::Status> end;
  {
    MutexLock lock(mutex_);
    starting_read_ = false;
    end.swap(end_after_start_);
  }
  if (end) Finish(*end);
}

void EmbedStreamCall::End(const grpc::Status& status) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    if (starting_read_) {
      end_after_start_ = status;
      return;
    }
  }
  Finish(status);
}

void EmbedStreamCall::OnReadDone(bool ok) {
  const auto self = shared_from_this();
  if (!ok) {
    {
      MutexLock lock(mutex_);
      half_closed_ = true;
    }
    FinishIfIdle();
    return;
  }
  Handle(std::move(incoming_));
  {
    MutexLock lock(mutex_);
    const auto most = static_cast<size_t>(service_.limits.max_requests_per_stream);
    paused_ = draining_ || in_flight_ >= most;
    if (paused_) return;
  }
  Read();
}

void EmbedStreamCall::Handle(v1::EmbedRequest request) {
  const std::string id = request.request_id();
  bool duplicate = false;
  {
    MutexLock lock(mutex_);
    duplicate = !ids_.insert(id).second;
    ++in_flight_;
  }
  const auto self = shared_from_this();
  // Captures no reference to the call: the state's own keeps it alive until this has run.
  // The id is free before the caller can have read the last answer, and use it again.
  const CallSide side{self, &outbox_, &metrics_,
                      [this, id, duplicate] {
                        MutexLock lock(mutex_);
                        if (!duplicate) ids_.erase(id);
                      },
                      [this] { RequestFinished(); }};
  const auto state = std::make_shared<EmbedRequestState>(side, id, DeadlineOf(*context_));
  const absl::Status status =
      duplicate ? absl::InvalidArgumentError("request_id " + Quoted(id) +
                                             " is in flight on this stream already")
                : state->Submit(service_, std::move(request));
  if (status.ok()) return;
  state->Refused(status);
  outbox_.Push(ResultChunker::RequestFailed(id, status, state));
}

void EmbedStreamCall::RequestFinished() {
  bool resume = false;
  {
    MutexLock lock(mutex_);
    --in_flight_;
    resume = paused_ && !draining_;
    if (resume) paused_ = false;
  }
  if (resume) Read();
  FinishIfIdle();
}

void EmbedStreamCall::FinishIfIdle() {
  grpc::Status status;
  {
    MutexLock lock(mutex_);
    if (in_flight_ > 0 || !(half_closed_ || draining_)) return;
    if (!half_closed_) {
      status = {grpc::StatusCode::UNAVAILABLE, "the server is draining; try another one"};
    }
  }
  outbox_.FinishWhenEmpty(status);
}

void EmbedStreamCall::OnWriteDone(bool ok) { outbox_.Written(ok); }

void EmbedStreamCall::OnCancel() { outbox_.Cancel(); }

void EmbedStreamCall::OnDone() {
  // Not in the destructor: a result on its way may keep the call for longer than the server lives.
  registry_.Remove(this);
  metrics_.StreamClosed();
  const std::shared_ptr<EmbedStreamCall> self = std::move(self_);
}

void StreamRegistry::Add(const std::shared_ptr<EmbedStreamCall>& stream) {
  MutexLock lock(mutex_);
  streams_[stream.get()] = stream;
}

void StreamRegistry::Remove(EmbedStreamCall* stream) {
  MutexLock lock(mutex_);
  streams_.erase(stream);
}

void StreamRegistry::DrainAll() {
  std::vector<std::shared_ptr<EmbedStreamCall>> streams;
  {
    MutexLock lock(mutex_);
    for (const auto& [address, stream] : streams_) {
      if (auto alive = stream.lock()) streams.push_back(std::move(alive));
    }
  }
  for (const auto& stream : streams) stream->Drain();
}

}  // namespace linserve
