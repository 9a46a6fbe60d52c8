#pragma once

#include <cstdint>
#include <memory>

#include "core/threads/periodic.h"
#include "serving/inflight.h"

namespace linserve {

// Gives the memory that is free back to the system: when no request has come for two seconds, when
// large requests are done with, and otherwise once a minute. From batch to batch it is kept (see
// KeepFreedPages() in main.cc), and its fragments would add up over days.
class MemoryTrim {
 public:
  explicit MemoryTrim(std::shared_ptr<Inflight> inflight);

 private:
  void Look();

  const std::shared_ptr<Inflight> inflight_;
  int64_t seen_ = 0;     // requests that were ever counted
  int64_t idle_ = 0;     // seconds without any request
  int64_t seconds_ = 0;  // seconds since the last trim
  int64_t most_ = 0;     // most bytes that were in flight since then
  Periodic periodic_;
};

}  // namespace linserve
