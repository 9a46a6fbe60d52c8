#pragma once

#include <memory>
#include <thread>

#include "batching/inflight.h"
#include "core/mutex.h"

namespace linserve {

// Gives the memory that is free back to the system once requests have come and none is left: under
// load it is kept (see KeepFreedPages() in main.cc), and its fragments would add up over days.
class IdleMemory {
 public:
  explicit IdleMemory(std::shared_ptr<const Inflight> inflight);
  ~IdleMemory();

 private:
  void Run();

  const std::shared_ptr<const Inflight> inflight_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
