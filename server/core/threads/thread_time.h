#pragma once

#include <chrono>
#include <ctime>

namespace linserve {

// Returns how long the calling thread has computed. What it waited for processors, locks, or files
// does not count.
inline std::chrono::nanoseconds ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace linserve
