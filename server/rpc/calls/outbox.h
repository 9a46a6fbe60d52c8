#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/threads/mutex.h"
#include "rpc/calls/answer.h"
#include "telemetry/metrics.h"

namespace linserve {

// Writes for one call: at most one write is in flight, the stream is finished exactly once, and
// nothing is written after that. Thread-safe. Callers keep the call alive during each method, since
// the `finish` hook may end it.
class Outbox {
 public:
  struct Hooks {
    std::function<void(const grpc::ByteBuffer*)> write;  // starts a write; Written() is its end
    std::function<void(grpc::Status)> finish;
    // Writes a message and ends the stream well, in one go: that saves the caller waiting for the
    // end. Closed() is its end. Empty if the call cannot do that.
    std::function<void(const grpc::ByteBuffer*)> write_and_finish{};
  };

  // `metrics` must outlive the outbox.
  Outbox(Hooks hooks, RpcMetrics& metrics);

  // Queues an answer. It is dropped if the call is cancelled or finished, or about to be.
  void Push(std::unique_ptr<Answer> answer);

  // Queues a message before the answers to come. It does not count as one of them.
  void PushNotice(std::unique_ptr<Answer> notice);

  // Says how many answers the call has in all, pushed in any order: the last of them may end it.
  // REQUIRES: no more are pushed.
  void Expect(size_t answers);

  // Ends the stream once all that was pushed is written; what is pushed later is dropped. The first
  // status that is given counts.
  void FinishWhenEmpty(grpc::Status status);

  // Drops what is queued and ends the stream with the status, because an answer cannot be made. An
  // answer that throws as its messages are made does the same.
  void Abort(grpc::Status status);
  // Called when the caller left: drops what is queued and ends the stream.
  void Cancel();
  bool cancelled() const;  // by either

  // Called when the write in flight ended; `ok` is false if the stream is broken.
  void Written(bool ok);

  // Called when the call is over: gives up what the last write held.
  void Closed();

 private:
  void Queue(std::unique_ptr<Answer> answer, bool expected);
  void Stop(grpc::Status status, bool was_writing);
  void Make(WireMessage& message);
  bool MakeNext();
  void Pump();
  void WriteNext();

  const Hooks hooks_;
  RpcMetrics& metrics_;

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Answer>> answers_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> final_status_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Counts the expected answers that are not pushed yet; nullopt if nobody said how many there are.
  std::optional<size_t> not_pushed_ ABSL_GUARDED_BY(mutex_);

  // These belong to whoever set `writing_`, until Written() has cleared it.
  std::unique_ptr<Answer> current_;             // has more messages
  std::vector<std::unique_ptr<Answer>> ended_;  // their last message is in `message_`
  grpc::ByteBuffer message_;
  std::chrono::steady_clock::time_point write_start_;
};

}  // namespace linserve
