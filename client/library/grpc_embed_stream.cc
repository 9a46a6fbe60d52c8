#include "client/library/grpc_embed_stream.h"

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "client/library/result_assembler.h"
#include "client/library/wire.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

// Holds a request that waits for results.
struct InFlight {
  explicit InFlight(size_t sequences) : assembler(sequences), results(sequences) {}

  ResultAssembler assembler;
  std::vector<SequenceResult> results;
  EmbedStream::Callback done;
};

// Keeps at most one write and one read in flight. The hold keeps the call alive while Send() may
// still start writes from outside of the reactions.
class GrpcEmbedStream final : public EmbedStream,
                              private grpc::ClientBidiReactor<v1::EmbedRequest, v1::EmbedResponse> {
 public:
  explicit GrpcEmbedStream(v1::EmbeddingService::Stub& stub) {
    stub.async()->EmbedStream(&context_, this);
    AddHold();
    StartRead(&response_);
    StartCall();
  }

  ~GrpcEmbedStream() override {
    Cancel();
    Finish().IgnoreError();
  }

  absl::Status Send(const EmbedCall& call, Callback done) override {
    v1::EmbedRequest request = EncodeRequest(call);
    const MutexLock lock(mutex_);
    if (!open_) {
      return status_.ok() ? absl::UnavailableError("the stream is over") : status_;
    }
    if (call.request_id.empty()) request.set_request_id("#" + std::to_string(++last_id_));
    auto [place, added] = in_flight_.try_emplace(request.request_id(), call.sequences.size());
    if (!added) {
      return absl::InvalidArgumentError("request_id '" + request.request_id() +
                                        "' is in flight on this stream already");
    }
    place->second.done = std::move(done);
    writes_.push_back(std::move(request));
    Pump();
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    MutexLock lock(mutex_);
    open_ = false;
    Pump();
    while (!ended_) finished_.Wait(lock);
    return status_;
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  // Starts what is due now: the next write, the end of the writes, the release of the hold.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || !hold_) return;
    if (!over_ && !writes_.empty()) {
      writing_ = true;
      StartWrite(&writes_.front());
      return;
    }
    if (!over_ && open_) return;
    if (!over_) StartWritesDone();
    hold_ = false;
    RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    writes_.pop_front();
    if (!ok) Close();
    Pump();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      const MutexLock lock(mutex_);
      Close();
      Pump();
      return;
    }
    // They may be of several requests, and a fault of one is not the others'.
    ForEachResponse(std::move(response_), [this](v1::EmbedResponse&& response) {
      Handle(std::move(response));
      return absl::OkStatus();
    }).IgnoreError();
    response_.Clear();
    StartRead(&response_);
  }

  // Ends the call; OnDone() brings its status to whatever is in flight.
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    open_ = false;
    over_ = true;
  }

  void OnDone(const grpc::Status& status) override {
    std::map<std::string, InFlight> left;
    {
      const MutexLock lock(mutex_);
      Close();
      status_ = ToAbsl(status);
      left.swap(in_flight_);
    }
    const absl::Status reason =
        status.ok() ? absl::UnavailableError("the stream ended before the answer") : ToAbsl(status);
    for (auto& [id, request] : left) request.done({id, reason, {}});
    // The lock is held, since the stream may be destroyed as soon as it has ended.
    const MutexLock lock(mutex_);
    ended_ = true;
    finished_.NotifyAll();
  }

  // Handles an answer. Answers to requests that are no longer in flight are dropped.
  void Handle(v1::EmbedResponse&& response) {
    const std::string id = response.request_id();
    if (response.request_failed()) {
      return Complete(
          id, absl::Status(static_cast<absl::StatusCode>(response.code()), response.message()));
    }
    auto chunk = DecodeChunk(std::move(response));
    if (!chunk.ok()) return Complete(id, chunk.status());
    absl::Status status;
    {
      const MutexLock lock(mutex_);
      auto place = in_flight_.find(id);
      if (place == in_flight_.end()) return;
      InFlight& request = place->second;
      auto result = request.assembler.Add(*std::move(chunk));
      status = result.status();
      if (status.ok() && *result) {
        const size_t index = (*result)->index;
        request.results[index] = **std::move(result);
      }
      if (status.ok() && !request.assembler.complete()) return;
    }
    Complete(id, std::move(status));
  }

  void Complete(const std::string& id, absl::Status status) {
    MutexLock lock(mutex_);
    auto node = in_flight_.extract(id);
    lock.Unlock();
    if (node.empty()) return;
    InFlight& request = node.mapped();
    if (!status.ok()) request.results.clear();
    request.done({id, std::move(status), std::move(request.results)});
  }

  grpc::ClientContext context_;
  v1::EmbedResponse response_;

  Mutex mutex_;
  CondVar finished_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;   // Send() takes requests
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // a read or write has failed
  bool hold_ ABSL_GUARDED_BY(mutex_) =
      true;  // operations may be started from outside of the reactions
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // the first of writes_ is being written
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<v1::EmbedRequest> writes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, InFlight> in_flight_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<EmbedStream> OpenGrpcStream(v1::EmbeddingService::Stub& stub) {
  return std::make_unique<GrpcEmbedStream>(stub);
}

}  // namespace linserve
