#include "text/turns.h"

#include <utility>

namespace linserve {

Turns::Turns(int64_t threads) {
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Turns::~Turns() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void Turns::Run(Step step) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(step));
  }
  changed_.NotifyOne();
}

void Turns::Work() {
  MutexLock lock(mutex_);
  while (true) {
    while (waiting_.empty() && !ended_) changed_.Wait(lock);
    if (waiting_.empty()) return;
    Step step = std::move(waiting_.front());
    waiting_.pop_front();
    lock.Unlock();
    const bool done = step();
    if (done) step = nullptr;  // what it holds may be much, or end a call
    lock.Lock();
    if (!done) waiting_.push_back(std::move(step));
  }
}

}  // namespace linserve
