#pragma once

#include <cstdint>
#include <memory>

#include "batching/inflight.h"
#include "core/periodic.h"

namespace linserve {

// Gives the memory that is free back to the system once requests have come and none is left: under
// load it is kept (see KeepFreedPages() in main.cc), and its fragments would add up over days.
class IdleMemory {
 public:
  explicit IdleMemory(std::shared_ptr<const Inflight> inflight);

 private:
  void Look();

  const std::shared_ptr<const Inflight> inflight_;
  int64_t seen_ = 0;     // requests ever
  int64_t periods_ = 0;  // without any
  Periodic periodic_;
};

}  // namespace linserve
