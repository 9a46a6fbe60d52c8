#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "core/mutex.h"
#include "rpc/answer.h"
#include "telemetry/metrics.h"

namespace linserve {

// The writing side of one call: at most one write in flight, the stream finished exactly once, and
// nothing after that. Thread-safe. Callers keep the call alive during each method, since the
// `finish` hook may end it.
class Outbox {
 public:
  struct Hooks {
    std::function<void(const grpc::ByteBuffer*)> write;  // starts one; Written() is its end
    std::function<void(const grpc::Status&)> finish;
    // Writes one and ends the stream well, in one go: that saves the caller waiting for the end.
    // Closed() is its end. Empty: the call cannot.
    std::function<void(const grpc::ByteBuffer*)> write_and_finish{};
  };

  // `metrics` must outlive the outbox.
  Outbox(Hooks hooks, RpcMetrics& metrics);

  // Queues an answer; dropped if the call is cancelled or finished.
  void Push(std::unique_ptr<Answer> answer);

  // Queues a message before the answers to come, none of which it is.
  void PushNotice(std::unique_ptr<Answer> notice);

  // The call has so many answers in all, pushed in any order: the last of them may end it.
  // REQUIRES: no more are pushed.
  void Expect(size_t answers);

  // Ends the stream once all that was pushed is written. The first status counts.
  void FinishWhenEmpty(const grpc::Status& status);

  // The caller left: drops what is queued and ends the stream.
  void Cancel();
  bool cancelled() const;

  // The write in flight ended; `ok` is false if the stream is broken.
  void Written(bool ok);

  // The call is over: gives up what the last write held.
  void Closed();

 private:
  void Queue(std::unique_ptr<Answer> answer, bool expected);
  void Pump();
  void WriteNext();

  const Hooks hooks_;
  RpcMetrics& metrics_;

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Answer>> answers_ LINSERVE_GUARDED_BY(mutex_);
  std::optional<grpc::Status> final_status_ LINSERVE_GUARDED_BY(mutex_);
  bool cancelled_ LINSERVE_GUARDED_BY(mutex_) = false;
  bool writing_ LINSERVE_GUARDED_BY(mutex_) = false;
  bool finished_ LINSERVE_GUARDED_BY(mutex_) = false;
  // Expected answers that are not pushed yet; nullopt: nobody said how many there are.
  std::optional<size_t> not_pushed_ LINSERVE_GUARDED_BY(mutex_);

  // Whoever set `writing_` owns these until Written() has cleared it.
  std::unique_ptr<Answer> current_;
  bool last_ = false;  // message of `current_`
  grpc::ByteBuffer message_;
  std::chrono::steady_clock::time_point write_start_;
};

}  // namespace linserve
