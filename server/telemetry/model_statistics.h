#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "core/sequence/item.h"
#include "core/threads/mutex.h"

namespace linserve {

// Counts how often something happened, and how long it took in all.
struct DurationTotal {
  uint64_t count = 0;
  std::chrono::nanoseconds time{0};

  void Add(std::chrono::nanoseconds one) {
    ++count;
    time += one;
  }
};

// Adds up the times of Timing, divided as the Open Inference Protocol divides them.
struct ComputeTotals {
  DurationTotal input;   // laying the batch out and handing it to the model
  DurationTotal infer;   // the forward pass
  DurationTotal output;  // pooling and copying out

  void Add(const Timing& timing);
};

// Holds what the statistics of the Open Inference Protocol say of one model version since it was
// first loaded.
struct ModelFigures {
  uint64_t last_inference_ms = 0;  // since the Unix epoch; 0: none yet
  uint64_t inferences = 0;         // sequences of the requests that succeeded
  uint64_t executions = 0;         // forward passes
  DurationTotal success;           // requests, from their arrival to their answer
  DurationTotal fail;
  DurationTotal queue;    // of the requests that succeeded, by their last sequence
  ComputeTotals compute;  // of the requests that succeeded, by their last sequence
  std::map<uint64_t, ComputeTotals> passes;  // by the number of sequences
  DurationTotal cache_hit;                   // sequences, by the time of looking them up
  DurationTotal cache_miss;
};

// Keeps the figures that callers ask for by name, all under one lock: perf_analyzer compares them
// with each other. Thread-safe.
class ModelStatistics {
 public:
  // Called when a request was answered. `last` is the timing of the sequence that ended it, of
  // `sequences` that were computed; `total` runs from its arrival.
  void Succeeded(const Timing& last, uint64_t sequences, std::chrono::nanoseconds total);
  void Failed(std::chrono::nanoseconds total);

  // Called when a sequence was looked up in the cache of results.
  void LookedUp(bool hit, std::chrono::nanoseconds time);

  // Called after a forward pass.
  void Executed(const Timing& timing);

  ModelFigures Read() const;

 private:
  mutable Mutex mutex_;
  ModelFigures figures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
