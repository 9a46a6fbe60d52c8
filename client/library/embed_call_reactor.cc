#include "client/library/embed_call_reactor.h"

#include <optional>
#include <utility>

#include "client/library/infer_wire.h"
#include "client/library/result_assembler.h"
#include "client/library/wire.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

// Holds what the calls of both protocols have in common: a context that goes before the callback
// runs.
class ReactorCall : public PendingCall {
 public:
  void Cancel() override {
    const MutexLock lock(mutex_);
    if (context_) context_->TryCancel();
  }

 protected:
  ReactorCall(AsyncCalls& calls, const PreparedCall& call, EmbedCallback done)
      : calls_(calls), call_(call), done_(std::move(done)) {}

  const PreparedCall::Request& request() const { return call_.request(); }

  // Returns the context, with a deadline. REQUIRES: the call has not ended.
  grpc::ClientContext& ContextUntil(std::chrono::system_clock::time_point deadline) {
    const MutexLock lock(mutex_);
    context_->set_deadline(deadline);
    return *context_;
  }

  void End(absl::Status status, std::vector<SequenceResult> results) {
    {
      const MutexLock lock(mutex_);
      context_.reset();
    }
    done_(std::move(status), std::move(results));
    calls_.Remove(this);
  }

 private:
  AsyncCalls& calls_;
  const PreparedCall call_;
  Mutex mutex_;
  std::optional<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_){std::in_place};
  EmbedCallback done_;
};

class EmbedReactor final : public ReactorCall, public grpc::ClientReadReactor<v1::EmbedResponse> {
 public:
  EmbedReactor(AsyncCalls& calls, const PreparedCall& call, EmbedCallback done)
      : ReactorCall(calls, call, std::move(done)),
        assembler_(static_cast<size_t>(message().sequences_size())),
        results_(static_cast<size_t>(message().sequences_size())) {}

  void Start(v1::EmbeddingService::Stub& stub, std::chrono::system_clock::time_point deadline) {
    stub.async()->Embed(&ContextUntil(deadline), &message(), this);
    StartRead(&response_);
    StartCall();
  }

 private:
  const v1::EmbedRequest& message() const { return request().message; }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    broken_ = ForEachResponse(std::move(response_), [this](v1::EmbedResponse&& response) {
      return Take(std::move(response));
    });
    if (!broken_.ok()) return Cancel();
    response_.Clear();
    StartRead(&response_);
  }

  absl::Status Take(v1::EmbedResponse&& response) {
    auto chunk = DecodeChunk(std::move(response));
    if (!chunk.ok()) return chunk.status();
    auto result = assembler_.Add(*std::move(chunk));
    if (!result.ok()) return result.status();
    if (std::optional<SequenceResult>& complete = *result) {
      const size_t index = complete->index;
      results_[index] = *std::move(complete);
    }
    return absl::OkStatus();
  }

  void OnDone(const grpc::Status& status) override {
    absl::Status end = broken_.ok() ? ToAbsl(status) : broken_;
    if (end.ok() && !assembler_.complete()) {
      end = absl::InternalError("the call ended without a result for every sequence");
    }
    if (!end.ok()) results_.clear();
    End(std::move(end), std::move(results_));
  }

  v1::EmbedResponse response_;
  ResultAssembler assembler_;
  std::vector<SequenceResult> results_;
  absl::Status broken_;
};

class InferReactor final : public ReactorCall, public grpc::ClientUnaryReactor {
 public:
  InferReactor(AsyncCalls& calls, const PreparedCall& call, EmbedCallback done)
      : ReactorCall(calls, call, std::move(done)) {}

  void Start(inference::GRPCInferenceService::Stub& stub,
             std::chrono::system_clock::time_point deadline) {
    stub.async()->ModelInfer(&ContextUntil(deadline), &*request().infer, &response_, this);
    StartCall();
  }

 private:
  void OnDone(const grpc::Status& status) override {
    absl::Status end = ToAbsl(status);
    std::vector<SequenceResult> results;
    if (end.ok()) {
      auto decoded = DecodeInferResponse(request().call, response_);
      end = decoded.status();
      if (end.ok()) results = *std::move(decoded);
    }
    End(std::move(end), std::move(results));
  }

  inference::ModelInferResponse response_;
};

}  // namespace

AsyncCalls::~AsyncCalls() {
  MutexLock lock(mutex_);
  for (const auto& [place, call] : calls_) call->Cancel();
  while (!calls_.empty()) removed_.Wait(lock);
}

std::shared_ptr<PendingCall> AsyncCalls::Start(v1::EmbeddingService::Stub& stub,
                                               const PreparedCall& call,
                                               std::chrono::system_clock::time_point deadline,
                                               EmbedCallback done) {
  return StartReactor<EmbedReactor>(stub, call, deadline, std::move(done));
}

std::shared_ptr<PendingCall> AsyncCalls::Start(inference::GRPCInferenceService::Stub& stub,
                                               const PreparedCall& call,
                                               std::chrono::system_clock::time_point deadline,
                                               EmbedCallback done) {
  return StartReactor<InferReactor>(stub, call, deadline, std::move(done));
}

template <typename Reactor, typename Stub>
std::shared_ptr<PendingCall> AsyncCalls::StartReactor(
    Stub& stub, const PreparedCall& call, std::chrono::system_clock::time_point deadline,
    EmbedCallback done) {
  auto reactor = std::make_shared<Reactor>(*this, call, std::move(done));
  {
    const MutexLock lock(mutex_);
    calls_[reactor.get()] = reactor;
  }
  reactor->Start(stub, deadline);
  return reactor;
}

void AsyncCalls::Remove(PendingCall* call) {
  std::shared_ptr<PendingCall> removed;
  const MutexLock lock(mutex_);
  const auto place = calls_.find(call);
  removed = std::move(place->second);
  calls_.erase(place);
  // The lock is held, since this object may be destroyed as soon as the last call is removed.
  if (calls_.empty()) removed_.NotifyAll();
}

}  // namespace linserve
