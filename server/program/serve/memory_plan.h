#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linserve {

// Holds what the options say of memory, in bytes; 0: it is to be planned.
struct MemoryOptions {
  int64_t inflight = 0;
  int64_t sessions = 0;
  int64_t weights = 0;
  int64_t cache = 0;  // of all models; 0: none
};

// Says what the memory of a process is for, in bytes.
struct MemoryPlan {
  int64_t limit = 0;     // what there is
  int64_t program = 0;   // the process without models: libraries, threads, what malloc keeps
  int64_t weights = 0;   // of all models, while one is replaced also of its successor
  int64_t inflight = 0;  // requests and their results
  int64_t sessions = 0;  // of all models
  int64_t cache = 0;     // results that are kept
  int64_t scratch = 0;   // what the batches being computed need
  std::string warning;   // what does not fit, and how to mend it; empty: all does

  int64_t total() const { return program + weights + inflight + sessions + cache + scratch; }
};

// Shares the memory out. What the options say stands; what they leave open is shared by what they,
// the program and the models leave, with room for a successor of the largest model if that leaves
// enough. `models` are the bytes of each model's weights.
MemoryPlan PlanMemory(int64_t limit, int64_t program, const std::vector<int64_t>& models,
                      const MemoryOptions& options);

}  // namespace linserve
