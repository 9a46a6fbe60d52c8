#pragma once

#include <cstdint>
#include <memory>

#include "core/threads/periodic.h"
#include "serving/inflight.h"

namespace linserve {

// Gives the memory that is free back to the system: when no request has come for two seconds, and
// when the process has grown. From batch to batch free memory is kept (see KeepFreedPages() in
// main.cc): what large requests leave would stay, and fragments would add up over days.
class MemoryTrim {
 public:
  explicit MemoryTrim(std::shared_ptr<const Inflight> inflight);

 private:
  void Look();
  bool HasGrown() const;

  const std::shared_ptr<const Inflight> inflight_;
  int64_t seen_ = 0;     // requests that were ever counted
  int64_t idle_ = 0;     // seconds without any request
  int64_t seconds_ = 0;  // seconds since the last trim
  double resident_ = 0;  // bytes then
  Periodic periodic_;
};

}  // namespace linserve
