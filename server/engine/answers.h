#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/item.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

class OpenRequests;

// Answers the accepted sequences of one request, each exactly once and counted: with its result,
// or, wherever it is by then, once the request's deadline has come. From then on the request is
// abandoned, so that whatever holds its sequences drops them. Thread-safe.
class Answers : public ResultSink {
 public:
  // Answers to `sink`, which is let go of with the last answer. `open` must outlive this.
  Answers(std::shared_ptr<ResultSink> sink, size_t sequences, TimePoint deadline,
          ModelMetrics& metrics, OpenRequests& open);
  ~Answers() override;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  // Says that this sequence is to be answered. REQUIRES: nothing can answer it yet.
  void Expect(size_t index);

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override;
  void Report(size_t index, const ItemProgress& progress) override;
  bool Abandoned() const override;

  // Answers all that has no answer; returns how many sequences that were.
  size_t AnswerAll(const absl::Status& status);

  TimePoint deadline() const { return deadline_; }

 private:
  std::shared_ptr<ResultSink> Close(size_t index);

  const TimePoint deadline_;
  const std::shared_ptr<ModelMetrics> metrics_;
  OpenRequests& open_;
  mutable Mutex mutex_;
  std::shared_ptr<ResultSink> sink_ ABSL_GUARDED_BY(mutex_);  // null: all is answered
  std::vector<bool> unanswered_ ABSL_GUARDED_BY(mutex_);      // by index
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;                  // of the unanswered
};

// Knows the requests of an engine that have a deadline or go on by themselves. A timer answers
// those whose deadline has come, so that this waits for nothing that is being computed.
class OpenRequests {
 public:
  // `expired` is called on the timer's thread when it has answered requests, and once more at the
  // time that it returns.
  OpenRequests(Clock& clock, std::function<TimePoint()> expired);
  ~OpenRequests() { Stop(); }
  OpenRequests(const OpenRequests&) = delete;
  OpenRequests& operator=(const OpenRequests&) = delete;

  // Watches a request until it is destroyed. `generates` says that it goes on by itself.
  void Watch(const std::shared_ptr<Answers>& request, bool generates);
  void Forget(const Answers& request);

  // Ends the timer.
  void Stop();

  // Answers the requests that go on by themselves; returns how many sequences that were.
  size_t AnswerGenerating(const absl::Status& status);

  // Abandons all requests: what is being computed for them is dropped, with this status for an
  // answer.
  void GiveUp(const absl::Status& status);
  bool given_up() const { return given_up_; }
  absl::Status why_given_up() const;

 private:
  using Key = std::pair<TimePoint, const Answers*>;
  struct Watched {
    std::weak_ptr<Answers> request;
    bool generates = false;
  };

  void Work();
  std::shared_ptr<Answers> TakeDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const std::function<TimePoint()> expired_;
  std::atomic<bool> given_up_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, Watched> requests_ ABSL_GUARDED_BY(mutex_);
  TimePoint wakes_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();  // when the timer looks again
  absl::Status why_given_up_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
