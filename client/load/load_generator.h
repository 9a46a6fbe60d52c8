#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "client/library/calls.h"
#include "client/library/embedding_client.h"
#include "client/load/report/load_report.h"
#include "core/threads/mutex.h"

namespace linserve {

struct LoadOptions {
  // Requests a second, sent at the times of a Poisson process whatever the answers do (open loop).
  // 0 means a closed loop.
  double rate = 0;
  // Times at which requests are sent whatever the answers do, in place of `rate`. All of them are
  // measured: then nothing warms up, and the last one ends the measurement.
  std::vector<std::chrono::nanoseconds> times{};
  // In a closed loop, so many requests are always in flight; the answer to one sends the next.
  // Where the server cannot be reached or lets nobody in, the next one waits a little, longer each
  // time.
  size_t concurrency = 8;
  // Time of the measurement, unless `requests` ends it.
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
  uint64_t requests = 0;  // number to measure; 0: `duration` ends it
  // Time before the measurement, with the same load.
  std::chrono::nanoseconds warmup = std::chrono::seconds(1);
  uint64_t seed = 1;
  // In an open loop, a request beyond so many in flight is not sent, and counts as failed.
  size_t max_in_flight = 10000;

  bool open_loop() const { return rate > 0 || !times.empty(); }
};

struct LoadProgress {
  std::chrono::nanoseconds elapsed{0};
  bool warming_up = true;
  uint64_t answered = 0;
  uint64_t failed = 0;
  size_t in_flight = 0;
};

// Starts request `n` without blocking. `done` must be called exactly once, on another thread.
using SendRequest = std::function<std::shared_ptr<PendingCall>(uint64_t n, EmbedCallback done)>;

// Sends requests and measures the answers to those that were due within the measurement, and counts
// how many answers came within it.
class LoadGenerator {
 public:
  LoadGenerator(const LoadOptions& options, SendRequest send);

  // Runs the load, and returns when every request has been answered. Call it once. As soon as
  // `stop` is set, nothing more is sent, and what is in flight is cancelled and not measured.
  LoadReport Run(const std::atomic<bool>& stop);

  LoadProgress progress() const;  // thread-safe

 private:
  using Clock = std::chrono::steady_clock;

  struct Request {
    uint64_t n;
    Clock::time_point intended;
    Clock::time_point sent;
    bool measured;
    int refused;  // how many before it, one after the other, had to be followed by a pause
  };
  struct Paused {
    Clock::time_point until;
    int refused;
  };

  void RunClosedLoop(const std::atomic<bool>& stop);
  void RunOpenLoop(const std::atomic<bool>& stop);
  bool SleepUntil(Clock::time_point time, const std::atomic<bool>& stop);
  void WaitForAnswers(const std::atomic<bool>& stop);
  void Note(Clock::time_point now, const std::atomic<bool>& stop);
  void CancelAll();
  bool Due(Clock::time_point intended) const;
  void Send(Clock::time_point intended, int refused = 0);
  void SendPaused();
  void OnAnswer(const Request& request, const absl::Status& status,
                const std::vector<SequenceResult>& results);
  void Record(const Request& request, Clock::time_point now, const absl::Status& status,
              const std::vector<SequenceResult>& results);
  void NoteReach(Clock::time_point now, bool away) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const std::atomic<bool>& stop);

  const LoadOptions options_;
  const SendRequest send_;
  // Run() sets these times under the lock; until then, progress() finds that nothing has begun.
  Clock::time_point start_ = Clock::time_point::max();
  Clock::time_point measure_from_ = Clock::time_point::max();
  Clock::time_point measure_until_;
  // Holds the processor time when the measurement began or ended, and when that was noted.
  struct CpuMark {
    Clock::time_point when;
    double seconds = 0;
  };
  std::optional<CpuMark> cpu_at_start_;
  std::optional<CpuMark> cpu_at_end_;
  std::optional<Clock::time_point> stopped_at_;  // when the wish to stop was noticed

  mutable Mutex mutex_;
  CondVar answered_;
  std::unordered_map<uint64_t, std::shared_ptr<PendingCall>> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::vector<Paused> paused_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t measured_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point last_answer_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> away_since_ ABSL_GUARDED_BY(mutex_);
  LoadProgress progress_ ABSL_GUARDED_BY(mutex_);
  LoadReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
