#pragma once

#include <httplib.h>

#include <cstddef>
#include <deque>
#include <functional>

#include "core/mutex.h"

namespace linserve {

// As many threads as there are connections, up to a bound: httplib keeps one with a connection for
// as long as that is open, and a probe must not wait for those of others. Idle ones end.
class ElasticThreads : public httplib::TaskQueue {
 public:
  explicit ElasticThreads(size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override;
  // Ends what waits, and the threads.
  void shutdown() override;

 private:
  void Work();

  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  CondVar none_left_;
  std::deque<std::function<void()>> tasks_ LINSERVE_GUARDED_BY(mutex_);
  size_t threads_ LINSERVE_GUARDED_BY(mutex_) = 0;
  size_t idle_ LINSERVE_GUARDED_BY(mutex_) = 0;
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
};

}  // namespace linserve
