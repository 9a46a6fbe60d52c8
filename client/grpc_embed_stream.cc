#include "client/grpc_embed_stream.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "client/grpc_status.h"
#include "client/result_assembler.h"
#include "client/wire.h"

namespace linserve {
namespace {

// A request that waits for results.
struct InFlight {
  explicit InFlight(size_t sequences) : assembler(sequences), results(sequences) {}

  ResultAssembler assembler;
  std::vector<SequenceResult> results;
  EmbedStream::Callback done;
};

// At most one write and one read are in flight. The hold keeps the call alive while Send() may
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
    std::lock_guard lock(mutex_);
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
    PumpLocked();
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    std::unique_lock lock(mutex_);
    open_ = false;
    PumpLocked();
    finished_.wait(lock, [this] { return ended_; });
    return status_;
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  // Starts what is due now: the next write, the end of the writes, the release of the hold.
  void PumpLocked() {
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
    std::lock_guard lock(mutex_);
    writing_ = false;
    writes_.pop_front();
    if (!ok) CloseLocked();
    PumpLocked();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      std::lock_guard lock(mutex_);
      CloseLocked();
      PumpLocked();
      return;
    }
    Handle(std::move(response_));
    response_.Clear();
    StartRead(&response_);
  }

  // The call is over; OnDone() brings its status to whatever is in flight.
  void CloseLocked() {
    open_ = false;
    over_ = true;
  }

  void OnDone(const grpc::Status& status) override {
    std::map<std::string, InFlight> left;
    {
      std::lock_guard lock(mutex_);
      CloseLocked();
      status_ = ToAbsl(status);
      left.swap(in_flight_);
    }
    const absl::Status reason =
        status.ok() ? absl::UnavailableError("the stream ended before the answer") : status_;
    for (auto& [id, request] : left) request.done({id, reason, {}});
    // Under the lock, since the stream may be destroyed as soon as it has ended.
    std::lock_guard lock(mutex_);
    ended_ = true;
    finished_.notify_all();
  }

  // Answers to requests that are no longer in flight are dropped.
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
      std::lock_guard lock(mutex_);
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
    std::unique_lock lock(mutex_);
    auto node = in_flight_.extract(id);
    lock.unlock();
    if (node.empty()) return;
    InFlight& request = node.mapped();
    if (!status.ok()) request.results.clear();
    request.done({id, std::move(status), std::move(request.results)});
  }

  grpc::ClientContext context_;
  v1::EmbedResponse response_;

  std::mutex mutex_;
  std::condition_variable finished_;
  bool open_ = true;      // Send() takes requests
  bool over_ = false;     // a read or write has failed
  bool hold_ = true;      // operations may be started from outside of the reactions
  bool writing_ = false;  // the first of writes_
  bool ended_ = false;
  absl::Status status_;
  uint64_t last_id_ = 0;
  std::deque<v1::EmbedRequest> writes_;
  std::map<std::string, InFlight> in_flight_;
};

}  // namespace

std::unique_ptr<EmbedStream> OpenGrpcStream(v1::EmbeddingService::Stub& stub) {
  return std::make_unique<GrpcEmbedStream>(stub);
}

}  // namespace linserve
