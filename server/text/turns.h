#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace linserve {

// Threads for work that must hold up neither a caller's thread nor the one that computes. Jobs take
// turns, one step each, so that a large one does not keep small ones waiting. Thread-safe.
class Turns {
 public:
  // One step; true when the job is done. Steps of one job are never run at the same time.
  using Step = std::function<bool()>;

  explicit Turns(int64_t threads);
  // Finishes what was begun.
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  void Run(Step step);

 private:
  void Work();

  Mutex mutex_;
  CondVar changed_;
  std::deque<Step> waiting_ LINSERVE_GUARDED_BY(mutex_);
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace linserve
