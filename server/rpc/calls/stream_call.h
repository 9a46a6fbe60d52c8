#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/threads/mutex.h"
#include "rpc/calls/outbox.h"
#include "serving/service_context.h"

namespace linserve {

// Handles one call of a bidirectional RPC. Requests are read while fewer than
// max_requests_per_stream are in flight, and answered through the outbox. The stream ends when the
// caller has half-closed it and all is answered, or when the server drains. The call lives until
// gRPC and its last request are done with it.
class StreamCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                   public OpenStream,
                   public std::enable_shared_from_this<StreamCall> {
 public:
  // Begins to read. `call` keeps itself alive from now on.
  static StreamCall* Start(const std::shared_ptr<StreamCall>& call);

  void Drain() override;

 protected:
  StreamCall(ServiceContext& service, grpc::CallbackServerContext* context, const std::string& rpc);

  // Takes a request, and calls RequestFinished() once its last answer is written or dropped. An
  // error means that the bytes are no request; the stream ends with it once what came before is
  // answered. It ends at once with what this throws.
  virtual absl::Status Handle(grpc::ByteBuffer& request) = 0;
  // Called when the caller sends no more, or the call is over.
  virtual void HandleEnd() {}
  // RequestStarted() counts a request besides the one that is handled; RequestFinished() counts the
  // end of any.
  void RequestStarted();
  void RequestFinished();
  // Ends the stream at once, because a request cannot be answered.
  void Abort(const absl::Status& status);
  // Runs a part of the call. What it throws ends the stream.
  void Guard(absl::FunctionRef<void()> part);
  bool ended();   // nothing can be answered any more
  bool paused();  // nothing is read, since so much is in flight

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;
  Outbox outbox_;

 private:
  void Begin();
  void Take();
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void ReadNoMore(const absl::Status& fault);
  void FinishIfIdle();

  // gRPC allows no operation after Finish(), and a read may start on any thread: these two
  // functions order them without holding the lock while gRPC runs.
  void Read();
  void End(grpc::Status status);

  grpc::ByteBuffer incoming_;
  std::shared_ptr<const Caller> caller_;  // null: it may not call
  std::shared_ptr<StreamCall> self_;

  Mutex mutex_;
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;    // requests, until all is written
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;     // too much in flight to read on
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;  // the next may begin before one returns
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_after_start_ ABSL_GUARDED_BY(mutex_);
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;  // the stream is half-closed, or should be
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);        // why the stream should be half-closed
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
