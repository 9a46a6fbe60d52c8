#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "client/embedding_client.h"
#include "inference/grpc_service.grpc.pb.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {

struct PreparedCall::Request {
  v1::EmbedRequest message;
  // By the other protocol, and the call that its answer is read by.
  absl::StatusOr<inference::ModelInferRequest> infer;
  EmbedCall call;
};

// The asynchronous calls in flight on one channel. gRPC's callback threads belong to the process's
// channels and are joined with the last of them, so no call may keep the channel from one of these
// threads: a call lets go of it before its callback runs, and the channel's owner destroys this
// first, which waits for the calls.
class AsyncCalls {
 public:
  AsyncCalls() = default;
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls();  // cancels what is in flight and waits for its callbacks to return

  // EmbeddingClient::EmbedAsync() on one stub.
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

  std::mutex mutex_;
  std::condition_variable removed_;
  std::map<PendingCall*, std::shared_ptr<PendingCall>> calls_;
};

}  // namespace linserve
