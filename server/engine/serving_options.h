#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "engine/engine.h"

namespace linserve {

// How a model shares the processors, or the devices besides the CPU, out.
struct ReplicaPlan {
  int64_t replicas = 1;
  int64_t threads = 1;       // of each
  int64_t batch_tokens = 0;  // that a batch has room for
  std::string reason;        // for the log
};

// How a model is served: the defaults of the whole server, which the "serving" object of a model's
// config.json may override option by option.
struct ServingOptions {
  std::string padding = "packed";
  std::vector<int64_t> buckets;
  std::string dtype = "f32";
  std::string pooling = "none";
  int64_t max_batch_tokens = 0;  // as many as the device is fast with
  int64_t max_batch_sequences = 256;
  double max_batch_delay_ms = 0;
  int64_t max_queue_sequences = 16384;
  int64_t max_queue_tokens = 4 << 20;
  int64_t max_queue_bytes = int64_t{1} << 30;
  int64_t replicas = 0;
  int64_t threads = 0;
  int64_t cache_bytes = 0;
  int64_t max_session_bytes = int64_t{1} << 30;
  double session_idle_seconds = 600;
  bool warmup = true;
  bool allow_nonfinite = false;
  bool add_bos = false;
  bool add_eos = false;

  void Bind(OptionTable& table);
  EngineOptions ForEngine(const ReplicaPlan& plan) const;

  // What is not asked for: a replica on each of so many devices, or with 0 of them by the number of
  // processors; of those that this process may use if none is given.
  ReplicaPlan Replicas(int64_t devices) const;
  ReplicaPlan Replicas(int64_t devices, int64_t processors) const;
};

}  // namespace linserve
