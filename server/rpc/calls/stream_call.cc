#include "rpc/calls/stream_call.h"

#include <utility>

#include "core/status/draining.h"
#include "core/threads/guarded.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/grpc_status.h"
#include "rpc/messages/unpack.h"

namespace linserve {

StreamCall* StreamCall::Start(const std::shared_ptr<StreamCall>& call) {
  call->self_ = call;
  call->Guard([&] { call->Begin(); });
  return call.get();
}

void StreamCall::Begin() {
  service_.streams.Add(shared_from_this());
  auto caller = CallerOf(*context_, service_);
  if (caller.ok()) {
    caller_ = *std::move(caller);
    Read();
  } else {
    ReadNoMore(caller.status());
  }
  if (service_.draining) Drain();
}

void StreamCall::Guard(absl::FunctionRef<void()> part) {
  const absl::Status status = Guarded("the stream", part);
  if (!status.ok()) Abort(status);
}

void StreamCall::Abort(const absl::Status& status) { outbox_.Abort(ToGrpcStatus(status)); }

StreamCall::StreamCall(ServiceContext& service, grpc::CallbackServerContext* context,
                       const std::string& rpc)
    : service_(service),
      context_(context),
      metrics_(service.metrics.ForRpc(rpc)),
      outbox_({[this](const grpc::ByteBuffer* message) { StartWrite(message); },
               [this](grpc::Status status) { End(std::move(status)); }},
              metrics_) {
  metrics_.StreamOpened();
}

void StreamCall::Drain() {
  const auto self = shared_from_this();
  {
    MutexLock lock(mutex_);
    draining_ = true;
  }
  FinishIfIdle();
}

void StreamCall::Read() {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    ++starting_reads_;
  }
  incoming_.Clear();
  StartRead(&incoming_);
  std::optional<grpc::Status> end;
  {
    MutexLock lock(mutex_);
    if (--starting_reads_ == 0) end.swap(end_after_start_);
  }
  if (end) Finish(*std::move(end));
}

void StreamCall::End(grpc::Status status) {
  AddLoadReport(*context_, service_.load);
  {
    MutexLock lock(mutex_);
    ended_ = true;
    if (starting_reads_ > 0) {
      end_after_start_ = std::move(status);
      return;
    }
  }
  Finish(std::move(status));
}

void StreamCall::OnReadDone(bool ok) {
  const auto self = shared_from_this();
  Guard([&] {
    if (ok) return Take();
    HandleEnd();
    ReadNoMore(absl::OkStatus());
  });
}

// Takes what was read, and reads on if it may.
void StreamCall::Take() {
  RequestStarted();
  metrics_.Message(Direction::kReceived, incoming_.Length());
  Inflight::Reservation unpacked;
  absl::Status fault;
  // Nothing is unpacked for a caller who may not infer, and is refused below.
  if (caller_->May(Right::kInfer).ok()) {
    fault = UnpackRequest(service_, *caller_, incoming_, unpacked);
  }
  if (fault.ok()) fault = Handle(incoming_);
  if (!fault.ok()) {
    metrics_.Started();
    metrics_.Finished(static_cast<int>(fault.code()), {});
    {
      MutexLock lock(mutex_);
      --in_flight_;
    }
    return ReadNoMore(fault);
  }
  {
    MutexLock lock(mutex_);
    const auto most = static_cast<size_t>(service_.limits.max_requests_per_stream);
    paused_ = draining_ || in_flight_ >= most;
    if (paused_) return;
  }
  Read();
}

void StreamCall::ReadNoMore(const absl::Status& fault) {
  {
    MutexLock lock(mutex_);
    half_closed_ = true;
    fault_ = fault;
  }
  FinishIfIdle();
}

void StreamCall::RequestStarted() {
  MutexLock lock(mutex_);
  ++in_flight_;
}

void StreamCall::RequestFinished() {
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

bool StreamCall::ended() {
  MutexLock lock(mutex_);
  return ended_;
}

bool StreamCall::paused() {
  MutexLock lock(mutex_);
  return paused_;
}

void StreamCall::FinishIfIdle() {
  grpc::Status status;
  {
    MutexLock lock(mutex_);
    if (in_flight_ > 0 || !(half_closed_ || draining_)) return;
    if (half_closed_) {
      status = ToGrpcStatus(fault_);
    } else {
      status = ToGrpcStatus(DrainingError());
    }
  }
  outbox_.FinishWhenEmpty(status);
}

void StreamCall::OnWriteDone(bool ok) { outbox_.Written(ok); }

void StreamCall::OnCancel() { outbox_.Cancel(); }

void StreamCall::OnDone() {
  // This is not done in the destructor: a result on its way may keep the call for longer than the
  // server lives.
  service_.streams.Remove(this);
  Guard([this] { HandleEnd(); });
  metrics_.StreamClosed();
  const std::shared_ptr<StreamCall> self = std::move(self_);
}

}  // namespace linserve
