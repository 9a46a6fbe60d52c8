#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/threads/mutex.h"
#include "telemetry/metrics.h"
#include "telemetry/trace/ended_span.h"

namespace linserve {

// Takes spans to where traces are kept. Its functions are called on any thread.
class SpanSender {
 public:
  virtual ~SpanSender() = default;

  // Sends the spans, all or none, until the deadline at the latest. An error that another try may
  // mend has one of the codes that OTLP names for it.
  virtual absl::Status Send(const std::vector<EndedSpan>& spans, TraceTime deadline) = 0;
  // Has a Send() that is under way return.
  virtual void Cancel() = 0;
};

// Says how spans go together, and when another try is made.
struct SpanPolicy {
  size_t most = 8192;                        // that wait; what comes then is dropped, and counted
  size_t batch = 512;                        // that are sent at once
  std::chrono::milliseconds pause{1000};     // after which fewer are sent
  std::chrono::milliseconds timeout{10000};  // of one try
  std::chrono::milliseconds first_retry{1000};  // doubled with each try, and up to half less
  std::chrono::milliseconds patience{60000};    // after which a batch is given up
};

// Holds the spans that have ended until a thread of its own has sent them, so that no request waits
// for that.
class SpanQueue {
 public:
  SpanQueue() = default;
  ~SpanQueue() { Close(std::chrono::steady_clock::now()); }
  SpanQueue(const SpanQueue&) = delete;
  SpanQueue& operator=(const SpanQueue&) = delete;

  // Sends spans from now on. `metrics` must be there until Close().
  void Open(std::unique_ptr<SpanSender> sender, Metrics& metrics, const SpanPolicy& policy = {});
  bool open() const { return open_; }

  // Takes a span, or drops it. Blocks for nobody.
  void Add(EndedSpan span);

  // Takes no more spans, and sends those that wait, until the deadline at the latest.
  void Close(TraceTime deadline);

 private:
  void Run();
  std::vector<EndedSpan> AwaitBatch();
  void SendBatch(const std::vector<EndedSpan>& batch);
  bool AwaitRetry(const absl::Status& status, TraceTime next, TraceTime give_up);
  TraceTime Deadline(TraceTime own);
  void Tell(const absl::Status& status);

  std::atomic<bool> open_ = false;
  std::thread thread_;
  SpanPolicy policy_;
  std::unique_ptr<SpanSender> sender_;
  Metrics* metrics_ = nullptr;
  bool failing_ = false;  // the last batch was not sent, which the log has said

  Mutex mutex_;
  CondVar changed_;
  std::deque<EndedSpan> spans_ ABSL_GUARDED_BY(mutex_);
  TraceTime closing_ ABSL_GUARDED_BY(mutex_) = TraceTime::max();  // when all must have ended
  bool ended_ ABSL_GUARDED_BY(mutex_) = true;                     // the thread is done
};

}  // namespace linserve
