#include "rpc/stream_call.h"

#include <utility>

#include "inference/grpc_service.pb.h"
#include "linserve/v1/embedding.pb.h"

namespace linserve {

template <typename Request, typename Response>
StreamCall<Request, Response>* StreamCall<Request, Response>::Start(
    std::shared_ptr<StreamCall> call) {
  call->self_ = call;
  call->service_.streams.Add(call);
  call->Read();
  if (call->service_.draining) call->Drain();
  return call.get();
}

template <typename Request, typename Response>
StreamCall<Request, Response>::StreamCall(ServiceContext& service, const std::string& rpc)
    : service_(service),
      metrics_(service.metrics.ForRpc(rpc)),
      outbox_({[this](const Response* message) { this->StartWrite(message); },
               [this](const grpc::Status& status) { End(status); }},
              metrics_) {
  metrics_.StreamOpened();
}

template <typename Request, typename Response>
void StreamCall<Request, Response>::Drain() {
  const auto self = this->shared_from_this();
  {
    MutexLock lock(mutex_);
    draining_ = true;
  }
  FinishIfIdle();
}

template <typename Request, typename Response>
void StreamCall<Request, Response>::Read() {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    ++starting_reads_;
  }
  incoming_.Clear();
  this->StartRead(&incoming_);
  std::optional<grpc::Status> end;
  {
    MutexLock lock(mutex_);
    if (--starting_reads_ == 0) end.swap(end_after_start_);
  }
  if (end) this->Finish(*end);
}

template <typename Request, typename Response>
void StreamCall<Request, Response>::End(const grpc::Status& status) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    if (starting_reads_ > 0) {
      end_after_start_ = status;
      return;
    }
  }
  this->Finish(status);
}

template <typename Request, typename Response>
void StreamCall<Request, Response>::OnReadDone(bool ok) {
  const auto self = this->shared_from_this();
  if (!ok) {
    {
      MutexLock lock(mutex_);
      half_closed_ = true;
    }
    FinishIfIdle();
    return;
  }
  {
    MutexLock lock(mutex_);
    ++in_flight_;
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

template <typename Request, typename Response>
void StreamCall<Request, Response>::RequestFinished() {
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

template <typename Request, typename Response>
void StreamCall<Request, Response>::FinishIfIdle() {
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

template <typename Request, typename Response>
void StreamCall<Request, Response>::OnWriteDone(bool ok) {
  outbox_.Written(ok);
}

template <typename Request, typename Response>
void StreamCall<Request, Response>::OnCancel() {
  outbox_.Cancel();
}

template <typename Request, typename Response>
void StreamCall<Request, Response>::OnDone() {
  // Not in the destructor: a result on its way may keep the call for longer than the server lives.
  service_.streams.Remove(this);
  metrics_.StreamClosed();
  const std::shared_ptr<StreamCall> self = std::move(self_);
}

template class StreamCall<v1::EmbedRequest, v1::EmbedResponse>;
template class StreamCall<inference::ModelInferRequest, inference::ModelStreamInferResponse>;

}  // namespace linserve
