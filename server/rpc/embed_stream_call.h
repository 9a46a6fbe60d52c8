#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/mutex.h"
#include "rpc/embed_request.h"

namespace linserve {

class StreamRegistry;

// One call of EmbedStream: requests are read while fewer than max_requests_per_stream are in
// flight, and answered in the order in which they finish. A faulty request is an answer; the
// stream ends when the caller has half-closed it and all is answered, or when the server drains.
class EmbedStreamCall : public grpc::ServerBidiReactor<v1::EmbedRequest, v1::EmbedResponse>,
                        public std::enable_shared_from_this<EmbedStreamCall> {
 public:
  static EmbedStreamCall* Start(ServiceContext& service, StreamRegistry& registry,
                                grpc::CallbackServerContext* context);

  EmbedStreamCall(ServiceContext& service, StreamRegistry& registry,
                  grpc::CallbackServerContext* context);

  // Ends the stream with UNAVAILABLE once what is in flight is answered.
  void Drain();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void Handle(v1::EmbedRequest request);
  void RequestFinished();
  void FinishIfIdle();

  // gRPC allows no operation after Finish(), and a read may start on any thread: these two order
  // them without holding the lock while gRPC runs.
  void Read();
  void End(const grpc::Status& status);

  ServiceContext& service_;
  StreamRegistry& registry_;
  grpc::CallbackServerContext* const context_;
  RpcMetrics& metrics_;
  Outbox outbox_;
  v1::EmbedRequest incoming_;
  std::shared_ptr<EmbedStreamCall> self_;

  Mutex mutex_;
  size_t in_flight_ LINSERVE_GUARDED_BY(mutex_) = 0;       // requests, until all is written
  std::set<std::string> ids_ LINSERVE_GUARDED_BY(mutex_);  // of those with answers to come
  bool paused_ LINSERVE_GUARDED_BY(mutex_) = false;        // too much in flight to read on
  bool starting_read_ LINSERVE_GUARDED_BY(mutex_) = false;
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_after_start_ LINSERVE_GUARDED_BY(mutex_);
  bool half_closed_ LINSERVE_GUARDED_BY(mutex_) = false;
  bool draining_ LINSERVE_GUARDED_BY(mutex_) = false;
};

// The open streams of a server, so that a drain can end those that idle.
class StreamRegistry {
 public:
  void Add(const std::shared_ptr<EmbedStreamCall>& stream);
  void Remove(EmbedStreamCall* stream);
  void DrainAll();

 private:
  Mutex mutex_;
  std::map<EmbedStreamCall*, std::weak_ptr<EmbedStreamCall>> streams_ LINSERVE_GUARDED_BY(mutex_);
};

}  // namespace linserve
