#include "client/load/load_generator.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client/load/arrivals.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

// The wish to stop is noticed at most so late.
constexpr std::chrono::milliseconds kPoll{50};

// Returns the processor time of all threads so far.
double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns whether who is answered so had better not ask again at once. Refusals for lack of room
// are part of what a load measures.
bool AsksForPause(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnauthenticated(status);
}

std::chrono::milliseconds PauseAfter(int refused) {
  constexpr std::chrono::milliseconds kFirst{50};
  constexpr std::chrono::milliseconds kMost{1000};
  constexpr int kDoublings = 5;
  return std::min(kFirst * (1 << std::min(refused, kDoublings)), kMost);
}

uint64_t Nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(std::max<int64_t>(time.count(), 0));
}

void AddTo(LoadTimeline::Interval& interval, std::chrono::nanoseconds latency, bool whole,
           const std::vector<SequenceResult>& results) {
  ++(whole ? interval.answered : interval.failed);
  if (whole) interval.latency.Record(Nanoseconds(latency));
  for (const SequenceResult& result : results) {
    if (!result.status.ok()) continue;
    ++interval.sequences;
    if (result.timing.batch_sequences > 0) ++interval.computed;
    interval.batch_sequences += static_cast<double>(result.timing.batch_sequences);
  }
}

}  // namespace

LoadGenerator::LoadGenerator(const LoadOptions& options, SendRequest send)
    : options_(options), send_(std::move(send)) {}

LoadReport LoadGenerator::Run(const std::atomic<bool>& stop) {
  {
    const MutexLock lock(mutex_);
    start_ = Clock::now();
    measure_from_ = start_ + options_.warmup;
    measure_until_ =
        options_.requests > 0 ? Clock::time_point::max() : measure_from_ + options_.duration;
    if (!options_.times.empty()) {
      measure_from_ = start_;
      measure_until_ = Clock::time_point::max();
    }
  }
  if (options_.open_loop()) {
    RunOpenLoop(stop);
  } else {
    RunClosedLoop(stop);
  }
  WaitForAnswers(stop);
  Finish(stop);
  const MutexLock lock(mutex_);
  return report_;
}

void LoadGenerator::RunClosedLoop(const std::atomic<bool>& stop) {
  for (size_t i = 0; i < options_.concurrency; ++i) Send(Clock::now());
  while (!cpu_at_start_ && SleepUntil(std::min(measure_from_, Clock::now() + kPoll), stop)) {
    SendPaused();
  }
}

void LoadGenerator::RunOpenLoop(const std::atomic<bool>& stop) {
  // The kernel may otherwise wake this thread 50 microseconds late to save power.
  prctl(PR_SET_TIMERSLACK, 1);
  const bool replay = !options_.times.empty();
  PoissonArrivals arrivals(replay ? 1 : options_.rate, options_.seed);
  for (size_t i = 0; !replay || i < options_.times.size(); ++i) {
    const Clock::time_point intended = start_ + (replay ? options_.times[i] : arrivals.Next());
    if (!Due(intended) || !SleepUntil(intended, stop)) return;
    Send(intended);
  }
}

// Sleeps until a time; returns false if the load is to stop.
bool LoadGenerator::SleepUntil(Clock::time_point time, const std::atomic<bool>& stop) {
  while (true) {
    const auto now = Clock::now();
    Note(now, stop);
    if (stopped_at_) return false;
    if (now >= time) return true;
    const auto mark = cpu_at_start_ ? time : std::min(time, measure_from_);
    std::this_thread::sleep_until(std::min(mark, now + kPoll));
  }
}

// Notes when the measurement begins and ends, and that it is to stop.
void LoadGenerator::Note(Clock::time_point now, const std::atomic<bool>& stop) {
  if (stop && !stopped_at_) stopped_at_ = now;
  const bool ended = stopped_at_ || now >= measure_until_;
  if (!cpu_at_start_ && now >= measure_from_) cpu_at_start_ = CpuMark{now, CpuSeconds()};
  if (!cpu_at_end_ && ended) cpu_at_end_ = CpuMark{now, CpuSeconds()};
}

void LoadGenerator::WaitForAnswers(const std::atomic<bool>& stop) {
  MutexLock lock(mutex_);
  while (!in_flight_.empty() || !paused_.empty()) {
    if (answered_.WaitUntil(lock, Clock::now() + kPoll)) continue;
    Note(Clock::now(), stop);
    const bool cancel = stopped_at_ && !stopped_;
    if (cancel) stopped_ = true;
    lock.Unlock();
    if (cancel) CancelAll();
    SendPaused();
    lock.Lock();
  }
}

void LoadGenerator::CancelAll() {
  std::vector<std::shared_ptr<PendingCall>> calls;
  {
    const MutexLock lock(mutex_);
    for (const auto& [n, call] : in_flight_) calls.push_back(call);
  }
  for (const auto& call : calls) {
    if (call) call->Cancel();
  }
}

bool LoadGenerator::Due(Clock::time_point intended) const {
  const MutexLock lock(mutex_);
  const bool enough = options_.requests > 0 && measured_ >= options_.requests;
  return !stopped_ && !enough && intended < measure_until_;
}

void LoadGenerator::Send(Clock::time_point intended, int refused) {
  MutexLock lock(mutex_);
  // This is asked again under the lock, since several answers may want to send the last request.
  if (options_.requests > 0 && measured_ >= options_.requests) return;
  const uint64_t n = next_++;
  const bool measured = intended >= measure_from_;
  if (measured) ++measured_;
  if (options_.open_loop() && in_flight_.size() >= options_.max_in_flight) {
    ++progress_.failed;
    if (measured) {
      ++report_.requests;
      ++report_.unsent;
    }
    return;
  }
  in_flight_.try_emplace(n);
  lock.Unlock();
  const Request request{n, intended, Clock::now(), measured, refused};
  auto call = send_(
      n, [this, request](const absl::Status& status, const std::vector<SequenceResult>& results) {
        OnAnswer(request, status, results);
      });
  lock.Lock();
  // The answer may be there already, and so may the wish to stop, which has missed this call.
  const bool cancel = stopped_;
  if (auto place = in_flight_.find(n); place != in_flight_.end()) place->second = call;
  lock.Unlock();
  if (cancel && call) call->Cancel();
}

// Sends again where a pause is over. At the end of the load, nobody waits for the pauses.
void LoadGenerator::SendPaused() {
  const auto now = Clock::now();
  const bool due = Due(now);
  std::vector<Paused> over;
  {
    const MutexLock lock(mutex_);
    const auto waits = [&](const Paused& paused) { return due && paused.until > now; };
    const auto first = std::partition(paused_.begin(), paused_.end(), waits);
    over.assign(first, paused_.end());
    paused_.erase(first, paused_.end());
  }
  for (const Paused& paused : over) {
    if (due) Send(now, paused.refused);
  }
}

void LoadGenerator::OnAnswer(const Request& request, const absl::Status& status,
                             const std::vector<SequenceResult>& results) {
  const auto now = Clock::now();
  Record(request, now, status, results);
  const bool next = !options_.open_loop();
  const bool pause = AsksForPause(status);
  // The next request is sent before this one is taken off the list, which must not look empty in
  // between.
  if (next && !pause && Due(now)) Send(now);
  const MutexLock lock(mutex_);
  if (next && pause) paused_.push_back({now + PauseAfter(request.refused), request.refused + 1});
  in_flight_.erase(request.n);
  if (in_flight_.empty()) answered_.NotifyAll();
}

void LoadGenerator::Record(const Request& request, Clock::time_point now,
                           const absl::Status& status, const std::vector<SequenceResult>& results) {
  const bool whole = IsWhole(status, results);
  const MutexLock lock(mutex_);
  ++(whole ? progress_.answered : progress_.failed);
  if (stopped_) return;
  NoteReach(now, absl::IsUnavailable(status));
  if (now >= measure_from_ && now < measure_until_) {
    last_answer_ = now;
    if (status.ok()) report_.within.Add(results);
    AddTo(report_.timeline.At(now - measure_from_), now - request.intended, whole, results);
  }
  if (!request.measured) return;
  report_.Record(status, results);
  report_.send_lag.Record(Nanoseconds(request.sent - request.intended));
  if (whole) {
    report_.latency.Record(Nanoseconds(now - request.intended));
    report_.service.Record(Nanoseconds(now - request.sent));
  }
}

// Adds up the time within the measurement from an answer that the server is away to one that it is
// not.
void LoadGenerator::NoteReach(Clock::time_point now, bool away) {
  if (away && !away_since_) away_since_ = now;
  if (away || !away_since_) return;
  const auto from = std::max(*away_since_, measure_from_);
  const std::chrono::duration<double> lasted = std::min(now, measure_until_) - from;
  report_.away_seconds += std::max(lasted.count(), 0.0);
  away_since_.reset();
}

void LoadGenerator::Finish(const std::atomic<bool>& stop) {
  Note(Clock::now(), stop);
  const CpuMark cpu_end = cpu_at_end_.value_or(CpuMark{Clock::now(), CpuSeconds()});
  const MutexLock lock(mutex_);
  const bool by_count = options_.requests > 0 || !options_.times.empty();
  Clock::time_point end = by_count ? last_answer_ : measure_until_;
  if (stopped_at_) end = std::min(*stopped_at_, measure_until_);
  NoteReach(end, false);
  report_.seconds = std::max(std::chrono::duration<double>(end - measure_from_).count(), 0.0);
  if (cpu_at_start_) {
    report_.client_seconds =
        std::chrono::duration<double>(cpu_end.when - cpu_at_start_->when).count();
    report_.client_cpu_seconds = cpu_end.seconds - cpu_at_start_->seconds;
  }
  report_.client_cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  report_.open_loop = options_.open_loop();
  report_.interrupted = stopped_at_.has_value();
}

LoadProgress LoadGenerator::progress() const {
  const MutexLock lock(mutex_);
  LoadProgress progress = progress_;
  progress.in_flight = in_flight_.size();
  const auto now = Clock::now();
  progress.elapsed = std::max(now - start_, Clock::duration(0));
  progress.warming_up = now < measure_from_;
  return progress;
}

}  // namespace linserve
