#include "core/threads/periodic.h"

#include <utility>

#include "core/threads/guarded.h"

namespace linserve {
namespace {

constexpr std::chrono::seconds kPauseAfterFailure(1);

}  // namespace

Periodic::Periodic(Task task) : task_(std::move(task)), thread_([this] { Run(); }) {}

Periodic::~Periodic() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

void Periodic::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    std::chrono::nanoseconds pause = kPauseAfterFailure;
    RunGuarded("a periodic task", [&] { pause = task_(); });
    lock.Lock();
    if (!stopping_) stop_.WaitUntil(lock, std::chrono::steady_clock::now() + pause);
  }
}

}  // namespace linserve
