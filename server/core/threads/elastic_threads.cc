#include "core/threads/elastic_threads.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "core/threads/guarded.h"

namespace linserve {
namespace {

// A thread ends after it has had nothing to do for this long, unless it is the last: another might
// not be had when it is needed.
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
    // The thread is detached: End() waits for it, and it touches nothing after it has said that it
    // ends.
    std::thread([this] { Work(); }).detach();
    ++threads_;
  } catch (const std::exception&) {
    // The system has no thread or no memory left. One that is there takes the task later; before
    // there is any, nobody would.
    if (threads_ == 0) {
      tasks_.pop_back();
      throw;
    }
    changed_.NotifyOne();
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
    while (tasks_.empty() && !ended_ && (in_time || threads_ == 1)) {
      in_time = changed_.WaitUntil(lock, std::chrono::steady_clock::now() + kIdle);
    }
    --idle_;
    if (tasks_.empty()) break;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.Unlock();
    RunGuarded("a task of a connection", task);
    task = nullptr;
    lock.Lock();
  }
  if (--threads_ == 0) none_left_.NotifyAll();
}

}  // namespace linserve
