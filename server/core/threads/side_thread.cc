#include "core/threads/side_thread.h"

#include <utility>

#include "core/threads/guarded.h"

namespace linserve {

SideThread::SideThread(size_t most) : most_(most), thread_([this] { Run(); }) {}

SideThread::~SideThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void SideThread::Add(Job job) {
  {
    MutexLock lock(mutex_);
    while (jobs_.size() > most_) changed_.Wait(lock);
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyAll();
}

void SideThread::Wait() {
  MutexLock lock(mutex_);
  while (!jobs_.empty()) changed_.Wait(lock);
}

void SideThread::Run() {
  MutexLock lock(mutex_);
  while (true) {
    while (jobs_.empty() && !stopping_) changed_.Wait(lock);
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    lock.Unlock();
    RunGuarded("a job of a side thread", job);
    job = nullptr;  // what it holds goes without the lock, and before others learn that it is done
    lock.Lock();
    jobs_.pop_front();
    changed_.NotifyAll();
  }
}

}  // namespace linserve
