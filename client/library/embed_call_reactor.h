#pragma once

#include <chrono>
#include <map>
#include <memory>

#include "client/library/embedding_client.h"
#include "core/threads/mutex.h"
#include "inference/grpc_service.grpc.pb.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {

struct PreparedCall::Request {
  v1::EmbedRequest message;
  // Holds the request in the Open Inference Protocol; `call` is what its answer is read by.
  absl::StatusOr<inference::ModelInferRequest> infer;
  EmbedCall call;
};

// Keeps the asynchronous calls in flight on one channel. gRPC's callback threads belong to the
// process's channels and are joined with the last of them, so no call may keep the channel from one
// of these threads. So a call lets go of it before its callback runs, and the channel's owner
// destroys this first, which waits for the calls.
class AsyncCalls {
 public:
  AsyncCalls() = default;
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls();  // cancels what is in flight and waits for its callbacks to return

  // Starts EmbeddingClient::EmbedAsync() on one stub.
  std::shared_ptr<PendingCall> Start(v1::EmbeddingService::Stub& stub, const PreparedCall& call,
                                     std::chrono::system_clock::time_point deadline,
                                     EmbedCallback done);
  std::shared_ptr<PendingCall> Start(inference::GRPCInferenceService::Stub& stub,
                                     const PreparedCall& call,
                                     std::chrono::system_clock::time_point deadline,
                                     EmbedCallback done);

  // Called by a call when its callback has returned.
  void Remove(PendingCall* call);

 private:
  template <typename Reactor, typename Stub>
  std::shared_ptr<PendingCall> StartReactor(Stub& stub, const PreparedCall& call,
                                            std::chrono::system_clock::time_point deadline,
                                            EmbedCallback done);

  Mutex mutex_;
  CondVar removed_;
  std::map<PendingCall*, std::shared_ptr<PendingCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
