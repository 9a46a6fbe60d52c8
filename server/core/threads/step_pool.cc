#include "core/threads/step_pool.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "core/threads/guarded.h"
#include "core/threads/mutex.h"
#include "core/threads/virtual_time.h"

namespace linserve {
namespace steps {

using Time = std::chrono::nanoseconds;
using Order = std::pair<Time, uint64_t>;  // equal times stand in the order of arrival

struct Sharer;

struct Waiting {
  StepJob job;
  Sharer* sharer = nullptr;
};
using Jobs = std::map<Order, Waiting>;  // by the time that they have had

// Holds the jobs of one caller.
struct Sharer {
  uint64_t number = 0;
  Jobs waiting;
  std::map<Order, Sharer*>::node_type turn;  // empty while it is among those whose turn may be next
  size_t jobs = 0;                           // with those that are being run
  int64_t work = 0;
  Time had{0};
  VirtualTime time;  // of its jobs
};

// Says where a job waits.
struct Place {
  Sharer* sharer = nullptr;
  Order order{};
};
using Deadlines = std::map<std::pair<TimePoint, uint64_t>, Place>;

// Holds a job that is in no map. It takes no memory to put it back, so that a thread goes on even
// where there is none.
struct Taken {
  explicit Taken(StepJob taken) {
    Jobs jobs;
    Deadlines deadlines;
    if (taken.deadline != TimePoint::max()) {
      deadlines[{taken.deadline, 0}] = {};
      deadline = deadlines.extract(deadlines.begin());
    }
    jobs[Order()].job = std::move(taken);
    job = jobs.extract(jobs.begin());
  }
  Taken(Jobs::node_type held, Deadlines::node_type until)
      : job(std::move(held)), deadline(std::move(until)) {}

  Jobs::node_type job;
  Deadlines::node_type deadline;  // empty: the job has none
};

// Says whose step is next. Thread-safe.
class Turns {
 public:
  explicit Turns(int64_t threads) : threads_(threads) {}

  void Add(StepJob job);
  void End();

  // Waits for a job; nullopt once all are done and there will be no more.
  std::optional<Taken> Next();

  // Takes a job back after a step of this time, with so much work left.
  void StepDone(Taken taken, Time time, int64_t left);

  Time TimeFor(int64_t work) const;
  Time TimeUntilDone(const std::string& caller, int64_t work, Time enough) const;

 private:
  Sharer& SharerOf(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Put(Taken taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Sharer& sharer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enter(Sharer& sharer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Measure(int64_t work, Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Time Estimate(int64_t work) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t threads_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Sharer> sharers_ ABSL_GUARDED_BY(mutex_);
  std::map<Order, Sharer*> turns_ ABSL_GUARDED_BY(mutex_);  // those with jobs that wait
  Deadlines deadlines_ ABSL_GUARDED_BY(mutex_);             // of the jobs that wait
  VirtualTime time_ ABSL_GUARDED_BY(mutex_);                // of the sharers
  size_t active_ ABSL_GUARDED_BY(mutex_) = 0;               // sharers with jobs
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t work_ ABSL_GUARDED_BY(mutex_) = 0;         // of all jobs
  double done_work_ ABSL_GUARDED_BY(mutex_) = 0;     // in steps of late
  double done_seconds_ ABSL_GUARDED_BY(mutex_) = 0;  // that those took
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

void Turns::Add(StepJob job) {
  const std::string caller = job.caller;
  Taken taken(std::move(job));
  {
    const MutexLock lock(mutex_);
    Sharer& sharer = SharerOf(caller);
    if (sharer.jobs++ == 0) {
      ++active_;
      sharer.had = time_.Join(sharer.had);
      sharer.time = {};
    }
    Waiting& waiting = taken.job.mapped();
    waiting.sharer = &sharer;
    sharer.work += waiting.job.work;
    work_ += waiting.job.work;
    taken.job.key() = {sharer.time.Join(Time(0)), ++arrivals_};
    if (!taken.deadline.empty()) taken.deadline.key().second = arrivals_;
    Put(std::move(taken));
  }
  changed_.NotifyOne();
}

void Turns::End() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
}

std::optional<Taken> Turns::Next() {
  MutexLock lock(mutex_);
  while (turns_.empty() && !ended_) changed_.Wait(lock);
  if (turns_.empty()) return std::nullopt;
  Sharer* const first = turns_.begin()->second;
  Place place{first, first->waiting.begin()->first};
  if (!deadlines_.empty() && deadlines_.begin()->first.first <= std::chrono::steady_clock::now()) {
    place = deadlines_.begin()->second;
  }
  Jobs::node_type job = place.sharer->waiting.extract(place.order);
  auto deadline = deadlines_.extract({job.mapped().job.deadline, place.order.second});
  if (place.sharer->waiting.empty()) Leave(*place.sharer);
  return Taken(std::move(job), std::move(deadline));
}

void Turns::StepDone(Taken taken, Time time, int64_t left) {
  const MutexLock lock(mutex_);
  Waiting& waiting = taken.job.mapped();
  Sharer& sharer = *waiting.sharer;
  const int64_t done = waiting.job.work - left;
  if (done > 0) Measure(done, time);  // of a step without progress no speed is known
  work_ -= done;
  sharer.work -= done;
  time_.Pass(time, active_);
  sharer.time.Pass(time, sharer.jobs);
  Leave(sharer);
  sharer.had += time;
  if (left > 0) {
    waiting.job.work = left;
    taken.job.key().first += time;
    Put(std::move(taken));
    return;
  }
  Enter(sharer);
  if (--sharer.jobs == 0) --active_;
  Forget();
}

Sharer& Turns::SharerOf(const std::string& caller) {
  Sharer& sharer = sharers_[caller];
  if (sharer.number > 0) return sharer;
  std::map<Order, Sharer*> turn = {{Order(), &sharer}};
  sharer.turn = turn.extract(turn.begin());
  sharer.number = ++arrivals_;
  return sharer;
}

void Turns::Put(Taken taken) {
  Sharer& sharer = *taken.job.mapped().sharer;
  if (!taken.deadline.empty()) {
    taken.deadline.mapped() = {&sharer, taken.job.key()};
    deadlines_.insert(std::move(taken.deadline));
  }
  sharer.waiting.insert(std::move(taken.job));
  Enter(sharer);
}

void Turns::Leave(Sharer& sharer) {
  if (sharer.turn.empty()) sharer.turn = turns_.extract({sharer.had, sharer.number});
}

void Turns::Enter(Sharer& sharer) {
  if (sharer.turn.empty() || sharer.waiting.empty()) return;
  sharer.turn.key() = {sharer.had, sharer.number};
  turns_.insert(std::move(sharer.turn));
}

void Turns::Measure(int64_t work, Time time) {
  constexpr double kKept = 0.95;
  done_work_ = kKept * done_work_ + static_cast<double>(work);
  done_seconds_ = kKept * done_seconds_ + std::chrono::duration<double>(time).count();
}

// Forgets the sharers without jobs who would be treated as new ones are.
void Turns::Forget() {
  if (active_ == 0) {
    sharers_.clear();
    time_ = {};
    return;
  }
  if (sharers_.size() < forget_at_) return;
  const Time of_new_ones = time_.Join(Time::min());
  std::erase_if(sharers_, [of_new_ones](const auto& entry) {
    return entry.second.jobs == 0 && entry.second.had <= of_new_ones;
  });
  forget_at_ = std::max<size_t>(1024, 2 * sharers_.size());
}

Time Turns::TimeFor(int64_t work) const {
  const MutexLock lock(mutex_);
  return Estimate(work);
}

Time Turns::TimeUntilDone(const std::string& caller, int64_t work, Time enough) const {
  const MutexLock lock(mutex_);
  if (Estimate(work_ + work) <= enough) return Time(0);
  // Until the work is done the caller's other jobs get no more than the same, and other callers no
  // more than this one.
  int64_t own = work;
  const auto found = sharers_.find(caller);
  if (found != sharers_.end()) {
    for (const auto& [order, waiting] : found->second.waiting) {
      own += std::min(waiting.job.work, work);
    }
  }
  int64_t all = own;
  for (auto other = sharers_.begin(); other != sharers_.end(); ++other) {
    if (other != found) all += std::min(other->second.work, own);
  }
  const Time time = Estimate(all);
  return time > enough ? time : Time(0);
}

Time Turns::Estimate(int64_t work) const {
  constexpr double kLongest = 1e6;
  if (done_work_ <= 0) return Time(0);
  const double seconds =
      static_cast<double>(work) * done_seconds_ / done_work_ / static_cast<double>(threads_);
  return std::chrono::duration_cast<Time>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

}  // namespace steps

StepPool::StepPool(int64_t threads) : turns_(std::make_unique<steps::Turns>(threads)) {
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

StepPool::~StepPool() {
  turns_->End();
  for (std::thread& thread : threads_) thread.join();
}

void StepPool::Run(StepJob job) { turns_->Add(std::move(job)); }

std::chrono::nanoseconds StepPool::TimeFor(int64_t work) const { return turns_->TimeFor(work); }

std::chrono::nanoseconds StepPool::TimeUntilDone(const std::string& caller, int64_t work,
                                                 std::chrono::nanoseconds enough) const {
  return turns_->TimeUntilDone(caller, work, enough);
}

void StepPool::Work() {
  while (auto taken = turns_->Next()) {
    const auto begin = std::chrono::steady_clock::now();
    std::function<int64_t()>& step = taken->job.mapped().job.step;
    int64_t left = 0;
    RunGuarded("a step of a job", [&] { left = step(); });
    if (left == 0) step = nullptr;  // what it holds may be much, and its end may end a call
    turns_->StepDone(*std::move(taken), std::chrono::steady_clock::now() - begin, left);
  }
}

}  // namespace linserve
