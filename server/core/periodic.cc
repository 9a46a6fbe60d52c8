#include "core/periodic.h"

#include <utility>

namespace linserve {

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
    const auto pause = task_();
    lock.Lock();
    if (!stopping_) stop_.WaitUntil(lock, std::chrono::steady_clock::now() + pause);
  }
}

}  // namespace linserve
