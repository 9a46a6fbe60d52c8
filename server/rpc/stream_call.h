#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "rpc/outbox.h"
#include "rpc/service_context.h"

namespace linserve {

// One call of a bidirectional RPC: requests are read while fewer than max_requests_per_stream are
// in flight, and answered through the outbox. The stream ends when the caller has half-closed it
// and all is answered, or when the server drains. Lives until gRPC and its last request are done
// with it.
class StreamCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                   public OpenStream,
                   public std::enable_shared_from_this<StreamCall> {
 public:
  // Begins to read. `call` keeps itself alive from now on.
  static StreamCall* Start(const std::shared_ptr<StreamCall>& call);

  void Drain() override;

 protected:
  StreamCall(ServiceContext& service, grpc::CallbackServerContext* context, const std::string& rpc);

  // Takes a request; calls RequestFinished() once its last answer is written or dropped. An error:
  // the bytes are none, and the stream ends with it once what came before is answered.
  virtual absl::Status Handle(grpc::ByteBuffer& request) = 0;
  // The caller sends no more, or the call is over.
  virtual void HandleEnd() {}
  // Of a request besides the one that is handled.
  void RequestStarted();
  void RequestFinished();
  bool ended();   // nothing can be answered any more
  bool paused();  // nothing is read, since so much is in flight

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;
  Outbox outbox_;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void ReadNoMore(const absl::Status& fault);
  void FinishIfIdle();

  // gRPC allows no operation after Finish(), and a read may start on any thread: these two order
  // them without holding the lock while gRPC runs.
  void Read();
  void End(const grpc::Status& status);

  grpc::ByteBuffer incoming_;
  std::shared_ptr<StreamCall> self_;

  Mutex mutex_;
  size_t in_flight_ LINSERVE_GUARDED_BY(mutex_) = 0;    // requests, until all is written
  bool paused_ LINSERVE_GUARDED_BY(mutex_) = false;     // too much in flight to read on
  int starting_reads_ LINSERVE_GUARDED_BY(mutex_) = 0;  // the next may begin before one returns
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_after_start_ LINSERVE_GUARDED_BY(mutex_);
  bool half_closed_ LINSERVE_GUARDED_BY(mutex_) = false;  // or should be
  absl::Status fault_ LINSERVE_GUARDED_BY(mutex_);        // for which it should
  bool draining_ LINSERVE_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
