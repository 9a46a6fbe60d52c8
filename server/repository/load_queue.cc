#include "repository/load_queue.h"

#include <utility>

#include "core/status/draining.h"
#include "core/threads/guarded.h"

namespace linserve {

LoadQueue::LoadQueue(std::chrono::nanoseconds poll, Work look)
    : poll_(poll), look_(std::move(look)), thread_([this] { Run(); }) {}

LoadQueue::~LoadQueue() {
  Close();
  thread_.join();
}

void LoadQueue::Add(Work work, Done done) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      waiting_.push_back({std::move(work), std::move(done)});
      changed_.NotifyAll();
      return;
    }
  }
  done(Refused());
}

void LoadQueue::Close() {
  std::deque<Task> refused;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    refused.swap(waiting_);
  }
  changed_.NotifyAll();
  for (const Task& task : refused) task.done(Refused());
}

bool LoadQueue::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

absl::Status LoadQueue::Refused() { return DrainingError(); }

bool LoadQueue::Drain(TimePoint deadline) {
  Close();
  Done abandoned;
  {
    MutexLock lock(mutex_);
    while (busy_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (!busy_) return true;
    abandoned = std::exchange(done_, nullptr);
  }
  if (abandoned) abandoned(Refused());
  return false;
}

void LoadQueue::Run() {
  MutexLock lock(mutex_);
  TimePoint next_look = TimePoint::max();
  while (!closed_) {
    Task task{look_, nullptr};
    if (!waiting_.empty()) {
      task = std::move(waiting_.front());
      waiting_.pop_front();
    } else if (SteadyClock().Now() < next_look) {
      SteadyClock().WaitUntil(lock, changed_, next_look);
      continue;
    }
    busy_ = true;
    done_ = std::move(task.done);
    lock.Unlock();
    const absl::Status status = Guarded("a load", task.work);
    lock.Lock();
    const Done done = std::exchange(done_, nullptr);
    lock.Unlock();
    if (done) {
      RunGuarded("the answer to a load", [&] { done(status); });
    }
    lock.Lock();
    busy_ = false;
    changed_.NotifyAll();
    if (poll_.count() > 0) next_look = SteadyClock().Now() + poll_;
  }
}

}  // namespace linserve
