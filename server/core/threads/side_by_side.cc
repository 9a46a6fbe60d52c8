#include "core/threads/side_by_side.h"

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "core/system/processors.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

// The next loop of a pass comes soon, and waking a thread takes as long as a short loop. So threads
// look out for what they wait for, for as long as this, before they sleep.
constexpr std::chrono::microseconds kLookOut(100);

thread_local const LoopTurns* helped = nullptr;  // in whose loop the thread is a helper
thread_local bool is_side_by_side = false;
thread_local int64_t computing_scopes = 0;

// Waits until `condition` holds, or has not held for so long. After some looks whoever else wants
// the processor goes first.
template <typename Condition>
void LookOut(const Condition& condition) {
  constexpr int kLooks = 1000;
  for (int i = 0; i < kLooks; ++i) {
    if (condition()) return;
  }
  const auto end = std::chrono::steady_clock::now() + kLookOut;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// Is a loop that helpers may join.
struct Loop {
  LoopTurns turns;
  const std::function<void(LoopTurns&)>& run;
  int64_t places;                  // helpers who may join
  std::atomic<int64_t> inside{0};  // helpers who are computing it
  std::exception_ptr error{};      // of a helper
  std::fenv_t environment{};       // of the caller: how it rounds, and what of tiny numbers

  void Run() {
    const bool before = std::exchange(is_side_by_side, true);
    const absl::Cleanup restore = [before] { is_side_by_side = before; };
    run(turns);
  }
};

class Helpers {
 public:
  static Helpers& Get() {
    static Helpers helpers;
    return helpers;
  }

  ~Helpers() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    opened_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  int64_t processors() const { return processors_; }

  int64_t computing() const { return computing_; }

  void AddComputing(int64_t change) {
    computing_ += change;
    if (change > 0 || open_ == 0) return;
    const MutexLock lock(mutex_);
    opened_.NotifyOne();  // there is room for a helper
  }

  void NothingLeft() { --open_; }

  // Says whether a helper more is one too many.
  bool Full() const { return Working() >= processors_; }
  bool Crowded() const { return Working() > processors_; }

  void Run(Loop& loop) {
    {
      Open(loop);
      const absl::Cleanup close = [&] { Close(loop); };
      loop.Run();
    }
    if (loop.error) std::rethrow_exception(loop.error);
  }

 private:
  Helpers() : processors_(Processors()) {
    for (int64_t i = 1; i < processors_; ++i) {
      try {
        threads_.emplace_back([this] { Help(); });
      } catch (const std::exception&) {
        break;  // the system has no more threads, or memory: those that there are do the work
      }
    }
  }

  int64_t Working() const { return computing_ + helping_; }

  void Open(Loop& loop) {
    const MutexLock lock(mutex_);
    loops_.push_back(&loop);
    ++open_;
    const int64_t wanted = std::min({loop.places, asleep_, processors_ - Working()});
    for (int64_t i = 0; i < wanted; ++i) opened_.NotifyOne();
  }

  // Lets nobody in any more, and waits for those who are in.
  void Close(Loop& loop) {
    loop.turns.Stop();
    MutexLock lock(mutex_);
    std::erase(loops_, &loop);
    if (loop.inside == 0) return;
    lock.Unlock();
    LookOut([&] { return loop.inside == 0; });
    lock.Lock();
    while (loop.inside > 0) left_.Wait(lock);
  }

  void Help() {
    while (Loop* const loop = Join()) {
      std::exception_ptr error;
      std::fesetenv(&loop->environment);
      helped = &loop->turns;
      try {
        loop->Run();
      } catch (...) {
        error = std::current_exception();
        loop->turns.Stop();
      }
      Leave(*loop, error);
    }
  }

  Loop* Join() {
    LookOut([this] { return computing() == 0 || (open_ > 0 && !Full()); });
    MutexLock lock(mutex_);
    while (!ended_) {
      if (Loop* const loop = Full() ? nullptr : WithPlace()) {
        --loop->places;
        ++loop->inside;
        ++helping_;
        return loop;
      }
      ++asleep_;
      opened_.Wait(lock);
      --asleep_;
    }
    return nullptr;
  }

  Loop* WithPlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = std::find_if(loops_.begin(), loops_.end(), [](const Loop* loop) {
      return loop->places > 0 && loop->turns.left();
    });
    return found == loops_.end() ? nullptr : *found;
  }

  void Leave(Loop& loop, const std::exception_ptr& error) {
    const MutexLock lock(mutex_);
    if (error && !loop.error) loop.error = error;
    ++loop.places;
    --helping_;
    if (--loop.inside == 0) left_.NotifyAll();
  }

  const int64_t processors_;
  std::atomic<int64_t> computing_{0};
  std::atomic<int64_t> helping_{0};
  std::atomic<int64_t> open_{0};  // loops that have numbers left

  Mutex mutex_;
  CondVar opened_;
  CondVar left_;
  std::vector<Loop*> loops_ ABSL_GUARDED_BY(mutex_);
  int64_t asleep_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace

bool LoopTurns::Next(int64_t& number) {
  const bool is_helper = helped == this;
  if (is_helper && Helpers::Get().Crowded()) return false;
  if (left_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
    Stop();
    return false;
  }
  number = is_helper ? end_.fetch_sub(1, std::memory_order_relaxed) - 1
                     : first_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void LoopTurns::Stop() {
  left_.store(0, std::memory_order_relaxed);
  if (shared_ && !stopped_.exchange(true)) Helpers::Get().NothingLeft();
}

void SideBySide(int64_t count, int64_t threads, const std::function<void(LoopTurns&)>& run) {
  const int64_t places = std::min(threads, count) - 1;
  if (places <= 0) {
    LoopTurns turns(count, /*shared=*/false);
    return run(turns);
  }
  Loop loop{.turns = LoopTurns(count, /*shared=*/true), .run = run, .places = places};
  std::fegetenv(&loop.environment);
  Helpers::Get().Run(loop);
}

bool IsSideBySide() { return is_side_by_side; }

ComputingScope::ComputingScope() {
  if (computing_scopes++ == 0) Helpers::Get().AddComputing(+1);
}

ComputingScope::~ComputingScope() {
  if (--computing_scopes == 0) Helpers::Get().AddComputing(-1);
}

int64_t ShareOfProcessors(int64_t most) {
  const Helpers& helpers = Helpers::Get();
  const int64_t computing = std::max<int64_t>(helpers.computing(), 1);
  return std::clamp<int64_t>((helpers.processors() + computing - 1) / computing, 1, most);
}

}  // namespace linserve
