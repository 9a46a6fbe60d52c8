#pragma once

#include <grpcpp/support/status.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "core/threads/mutex.h"
#include "rpc/calls/answer.h"
#include "rpc/calls/outbox.h"

namespace linserve {

// Brings the outcomes of a stream's requests into its outbox: as they come, or in the order of the
// requests. Thread-safe.
class AnswerOrder {
 public:
  struct Outcome {
    std::unique_ptr<Answer> answer;  // null: the stream ends
    grpc::Status end{};              // status that the stream ends with
  };

  // `outbox` must outlive it.
  AnswerOrder(Outbox& outbox, bool ordered) : outbox_(outbox), ordered_(ordered) {}

  // Takes the outcome of the request of this number, from 0 on. After the end of the stream nothing
  // is sent.
  void Send(int64_t number, Outcome outcome);

  bool ended() const { return ended_; }

 private:
  void Push(Outcome outcome);

  Outbox& outbox_;
  const bool ordered_;
  std::atomic<bool> ended_ = false;  // nobody waits for what comes after

  Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // next request to be answered
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int64_t, Outcome> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
