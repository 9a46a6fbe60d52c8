#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "core/threads/periodic.h"
#include "serving/inflight.h"

namespace linserve {

// Gives the memory that is free back to the system: when no request has come for two seconds, when
// the process has grown, and again, less and less often, while it has more than it once had: what
// was in use amid a burst is free after it. From batch to batch free memory is kept (see
// core/system/heap.h): what large requests leave would stay, and fragments would add up over days.
class MemoryTrim {
 public:
  explicit MemoryTrim(std::shared_ptr<const Inflight> inflight);

 private:
  void Look();
  void Trim();

  const std::shared_ptr<const Inflight> inflight_;
  int64_t seen_ = 0;     // requests that were ever counted
  int64_t idle_ = 0;     // seconds without any request
  int64_t seconds_ = 0;  // seconds since the last trim
  int64_t pause_ = 0;    // seconds that the next one waits for at least if nothing grows
  double resident_ = 0;  // bytes after the last trim
  // Bytes after any trim since no request came; at first there was none.
  double least_ = std::numeric_limits<double>::infinity();
  Periodic periodic_;
};

}  // namespace linserve
