#include "http/elastic_threads.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace linserve {
namespace {

// A thread with nothing to do for so long ends.
constexpr std::chrono::seconds kIdle(10);

}  // namespace

void ElasticThreads::Run(std::function<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (idle_ >= tasks_.size() || threads_ == most_) {
    changed_.NotifyOne();
    return;
  }
  try {
    // Detached: End() waits for it, and it touches nothing after it has said that it ends.
    std::thread([this] { Work(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    changed_.NotifyOne();  // the system has no thread left: who is there comes to it
  }
}

bool ElasticThreads::End(TimePoint deadline) {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
  while (threads_ > 0) {
    if (!none_left_.WaitUntil(lock, deadline)) return threads_ == 0;
  }
  return true;
}

void ElasticThreads::Work() {
  MutexLock lock(mutex_);
  while (true) {
    bool in_time = true;
    ++idle_;
    const auto limit = std::chrono::steady_clock::now() + kIdle;
    while (tasks_.empty() && !ended_ && in_time) in_time = changed_.WaitUntil(lock, limit);
    --idle_;
    if (tasks_.empty()) break;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.Unlock();
    task();
    lock.Lock();
  }
  if (--threads_ == 0) none_left_.NotifyAll();
}

}  // namespace linserve
