#pragma once

#include <vector>

#include "core/threads/mutex.h"

namespace linserve {

// Is a condition that wakes the thread first which has waited for the shortest time: its caches are
// warm, and where there is work for one thread it stays the same one. REQUIRES: every call is made
// under the one mutex.
class NewestFirst {
 public:
  // Calls wait(condition), which waits on that, with the mutex locked. May wake for no reason.
  template <typename WaitOn>
  void Wait(const WaitOn& wait) {
    CondVar condition;
    waiting_.push_back(&condition);
    wait(condition);
    std::erase(waiting_, &condition);
  }

  void NotifyOne() {
    if (waiting_.empty()) return;
    waiting_.back()->NotifyOne();
    waiting_.pop_back();
  }

  void NotifyAll() {
    while (!waiting_.empty()) NotifyOne();
  }

 private:
  std::vector<CondVar*> waiting_;
};

}  // namespace linserve
