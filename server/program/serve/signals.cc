#include "program/serve/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "core/threads/guarded.h"
#include "core/threads/mutex.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds kSameSignal(2);  // a SIGTERM so soon after another is the same one

[[noreturn]] void ExitNow(const char* event, int code) {
  // A log that nobody reads must not keep the process.
  alarm(1);
  Log(LogLevel::kWarning, event);
  alarm(0);
  _exit(code);
}

// Waits for the next signal; returns 0 if none has come by `limit`.
int Next(const sigset_t& signals, Time limit = Time::max()) {
  using std::chrono::duration_cast;
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds left = std::max(limit, now) - now;
    const auto seconds = duration_cast<std::chrono::seconds>(left);
    const timespec wait{seconds.count(), (left - seconds).count()};
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal > 0) return signal;
    if (errno == EAGAIN && std::chrono::steady_clock::now() >= limit) return 0;
  }
}

// Waits until the process has ended, or ends it.
[[noreturn]] void AwaitEnd(const sigset_t& signals, std::chrono::nanoseconds longest) {
  const Time begun = std::chrono::steady_clock::now();
  while (true) {
    const int signal = Next(signals, begun + longest);
    if (signal == 0) ExitNow("the server did not end in time, exiting at once", 1);
    const bool same = signal == SIGTERM && std::chrono::steady_clock::now() < begun + kSameSignal;
    if (signal != SIGHUP && !same) ExitNow("second signal, exiting at once", 128 + signal);
  }
}

}  // namespace

// Holds what the waiting thread needs of the signals, since the thread outlives the server.
struct Signals::State {
  sigset_t signals{};
  Mutex mutex;
  CondVar changed;
  bool ready ABSL_GUARDED_BY(mutex) = false;
  std::function<void()> reload ABSL_GUARDED_BY(mutex);  // empty: not now
  bool asked ABSL_GUARDED_BY(mutex) = false;            // for a reload that has not begun
  bool reloading ABSL_GUARDED_BY(mutex) = false;
  bool ending ABSL_GUARDED_BY(mutex) = false;
  std::chrono::nanoseconds longest ABSL_GUARDED_BY(mutex){0};
  std::promise<int> first;
};

Signals::Signals() : state_(std::make_shared<State>()) {
  sigemptyset(&state_->signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&state_->signals, signal);
  pthread_sigmask(SIG_BLOCK, &state_->signals, nullptr);
}

// Reloads each time that it is asked for, until the server is to end, and reports what keeps it
// from that.
void Signals::Reload(State& state) {
  MutexLock lock(state.mutex);
  while (true) {
    while (!state.asked && !state.ending) state.changed.Wait(lock);
    if (state.ending) return;
    state.asked = false;
    const std::function<void()> reload = state.reload;
    state.reloading = true;
    lock.Unlock();
    if (reload) RunGuarded("the reload", reload);
    lock.Lock();
    state.reloading = false;
    state.changed.NotifyAll();
  }
}

void Signals::Watch() {
  // What a reload reads may not come, and a signal to end must be heard all the same.
  std::thread([state = state_] { Reload(*state); }).detach();
  std::thread([state = state_] {
    int signal = Next(state->signals);
    for (; signal == SIGHUP; signal = Next(state->signals)) {
      MutexLock lock(state->mutex);
      state->asked = true;
      state->changed.NotifyAll();
    }
    std::chrono::nanoseconds longest{};
    {
      MutexLock lock(state->mutex);
      if (!state->ready) ExitNow("signal while loading, exiting at once", 128 + signal);
      state->ending = true;
      state->changed.NotifyAll();
      longest = state->longest;
    }
    state->first.set_value(signal);
    AwaitEnd(state->signals, longest);
  }).detach();
}

void Signals::Ready(std::function<void()> reload, std::chrono::nanoseconds longest) {
  MutexLock lock(state_->mutex);
  state_->ready = true;
  state_->reload = std::move(reload);
  state_->longest = longest;
}

void Signals::AllowToEnd(std::chrono::nanoseconds longest) {
  MutexLock lock(state_->mutex);
  state_->longest = longest;
}

bool Signals::WaitForReload(std::chrono::nanoseconds longest) {
  const Time limit = std::chrono::steady_clock::now() + longest;
  MutexLock lock(state_->mutex);
  while (state_->reloading) {
    if (!state_->changed.WaitUntil(lock, limit)) break;
  }
  if (state_->reloading) {
    Log(LogLevel::kWarning, "a reload hangs, and is not waited for");
  }
  return !state_->reloading;
}

int Signals::WaitForEnd() { return state_->first.get_future().get(); }

}  // namespace linserve
