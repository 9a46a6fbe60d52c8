#include "http/elastic_threads.h"

#include <utility>

namespace linserve {

void ElasticThreads::enqueue(std::function<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < most_) {
    threads_.emplace_back([this] { Work(); });
  }
  changed_.NotifyOne();
}

void ElasticThreads::shutdown() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    threads.swap(threads_);
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

void ElasticThreads::Work() {
  MutexLock lock(mutex_);
  while (true) {
    while (tasks_.empty()) {
      if (ended_) return;
      ++idle_;
      changed_.Wait(lock);
      --idle_;
    }
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.Unlock();
    task();
    lock.Lock();
  }
}

}  // namespace linserve
