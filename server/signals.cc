#include "signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>
#include <utility>

#include "core/mutex.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

[[noreturn]] void ExitNow(const char* event, int signal) {
  Log(LogLevel::kWarning, event);
  _exit(128 + signal);
}

int Next(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  return signal;
}

}  // namespace

// What the thread that waits has of it, since that outlives the server.
struct Signals::State {
  sigset_t signals{};
  Mutex mutex;
  bool ready LINSERVE_GUARDED_BY(mutex) = false;
  std::function<void()> reload LINSERVE_GUARDED_BY(mutex);  // empty: not now
  std::promise<int> first;
};

Signals::Signals() : state_(std::make_shared<State>()) {
  sigemptyset(&state_->signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&state_->signals, signal);
  pthread_sigmask(SIG_BLOCK, &state_->signals, nullptr);
}

void Signals::Watch() {
  std::thread([state = state_] {
    int signal = Next(state->signals);
    for (; signal == SIGHUP; signal = Next(state->signals)) {
      MutexLock lock(state->mutex);
      if (state->reload) state->reload();
    }
    {
      MutexLock lock(state->mutex);
      if (!state->ready) ExitNow("signal while loading, exiting at once", signal);
      state->reload = nullptr;
    }
    state->first.set_value(signal);
    do {
      signal = Next(state->signals);
    } while (signal == SIGHUP);
    ExitNow("second signal, exiting at once", signal);
  }).detach();
}

void Signals::Ready(std::function<void()> reload) {
  MutexLock lock(state_->mutex);
  state_->ready = true;
  state_->reload = std::move(reload);
}

int Signals::WaitForEnd() { return state_->first.get_future().get(); }

}  // namespace linserve
