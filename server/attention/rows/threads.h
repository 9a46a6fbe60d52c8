#pragma once

#include <cstdint>
#include <functional>

#include "core/threads/side_by_side.h"

namespace linserve {

// Sets the number of threads that LibTorch's functions, and loops by OnThreads() have on the
// calling thread, for as long as this lives.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int before_;
};

// Calls SideBySide() with the calling thread's number of threads. Within `run` each thread has
// itself alone, but for a loop of one number, which keeps them all; and no autograd.
void OnThreads(int64_t count, const std::function<void(LoopTurns& turns)>& run);

}  // namespace linserve
