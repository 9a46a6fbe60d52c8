#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/mutex.h"
#include "rpc/embed_request.h"
#include "rpc/stream_call.h"
#include "rpc/upload.h"

namespace linserve {

// One call of EmbedStream: requests are answered in the order in which they finish, and a faulty
// request is an answer.
class EmbedStreamCall : public StreamCall {
 public:
  EmbedStreamCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : StreamCall(service, context, "EmbedStream") {}

  // Ends uploads that have paused for too long.
  void LookUp() override;

 private:
  // A request whose sequence comes in parts. Not in flight until it is whole.
  struct Uploading {
    RequestContext context;
    v1::EmbedRequest request;        // without those rows
    std::unique_ptr<Upload> upload;  // null: refused, and what still comes of it is dropped
    TimePoint last_part{};
  };
  using Uploads = std::map<std::string, Uploading>;

  absl::Status Handle(grpc::ByteBuffer& bytes) override;
  void HandleEnd() override;

  absl::Status Claim(const std::string& id);
  std::shared_ptr<EmbedRequestState> NewState(const RequestContext& context, bool claimed);
  void Refuse(const RequestContext& context, bool claimed, const absl::Status& status);

  void BeginUpload(const RequestContext& context, Received<v1::EmbedRequest> received);
  absl::Status OpenUpload(Uploading& uploading, int64_t bytes);
  // The one sequence of a request.
  void AddPart(const RequestContext& context, const Received<v1::EmbedRequest>& received);
  // False: nothing is known of it.
  bool Add(const std::string& id, const Received<v1::EmbedRequest>& received, absl::Status& status,
           std::optional<Uploading>& ended) LINSERVE_REQUIRES(uploads_mutex_);
  Uploading Take(Uploads::iterator place, bool more_comes) LINSERVE_REQUIRES(uploads_mutex_);
  void DropRest(const std::string& id);

  Mutex ids_mutex_;
  std::set<std::string> ids_ LINSERVE_GUARDED_BY(ids_mutex_);  // of those with answers to come

  Mutex uploads_mutex_;
  Uploads uploads_ LINSERVE_GUARDED_BY(uploads_mutex_);
};

}  // namespace linserve
