#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/threads/mutex.h"
#include "rpc/calls/stream_call.h"
#include "rpc/embedding/embed_request.h"
#include "rpc/embedding/upload.h"

namespace linserve {

// Handles one call of EmbedStream. Requests are answered in the order in which they finish, and a
// faulty request is answered, too.
class EmbedStreamCall : public StreamCall {
 public:
  EmbedStreamCall(ServiceContext& service, grpc::CallbackServerContext* context)
      : StreamCall(service, context, "EmbedStream") {}

  // Ends uploads that have paused for too long.
  void LookUp() override;

 private:
  // Holds a request whose sequence comes in chunks. It is not in flight until it is whole.
  struct Uploading {
    RequestContext context;
    v1::EmbedRequest request;        // without the rows that come in chunks
    std::unique_ptr<Upload> upload;  // null: refused, and what still comes of it is dropped
    TimePoint last_chunk{};
    int64_t paid = 0;  // bytes of chunks that the caller's budget has paid for
    int64_t came = 0;  // bytes of chunks
  };
  using Uploads = std::map<std::string, Uploading>;

  absl::Status Handle(grpc::ByteBuffer& bytes) override;
  void HandleEnd() override;

  // Says what is known of the rest of a sequence whose later chunk comes.
  enum class Rest : uint8_t {
    kNone,     // no sequence has begun with this id
    kAwaited,  // it belongs to an upload
    kDropped,  // the sequence was refused
  };
  Rest RestOf(const std::string& id);
  absl::Status ReserveChunk(const std::string& id, const grpc::ByteBuffer& bytes);
  void EndUpload(const std::string& id, const absl::Status& status);
  void GiveUpIdle();
  void RefuseUnread(const RequestHead& head, Rest rest, RequestContext& context,
                    const absl::Status& status);
  absl::Status Claim(const std::string& id);
  std::shared_ptr<EmbedRequestState> NewState(const RequestContext& context, bool claimed);
  void Refuse(const RequestContext& context, bool claimed, const absl::Status& status);

  // `size` is that of the first chunk's message on the wire.
  void BeginUpload(const RequestContext& context, Received<v1::EmbedRequest> received,
                   int64_t size);
  absl::Status OpenUpload(Uploading& uploading, Inflight::Reservation place, int64_t bytes);
  // Adds the one sequence of a request as a chunk.
  void AddChunk(const RequestContext& context, const v1::EmbedRequest& request);
  // Adds a chunk; returns false if no upload of this id is known.
  bool Add(const std::string& id, const v1::Sequence& chunk, absl::Status& status,
           std::optional<Uploading>& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(uploads_mutex_);
  Uploading Take(Uploads::iterator place, bool more_comes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(uploads_mutex_);
  void DropRest(const std::string& id);

  Mutex ids_mutex_;
  std::set<std::string> ids_ ABSL_GUARDED_BY(ids_mutex_);  // ids of requests with answers to come

  Mutex uploads_mutex_;
  Uploads uploads_ ABSL_GUARDED_BY(uploads_mutex_);
};

}  // namespace linserve
