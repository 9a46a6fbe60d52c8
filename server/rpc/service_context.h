#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "access/access.h"
#include "batching/inflight.h"
#include "engine/model_manager.h"
#include "engine/repository.h"
#include "rpc/load_reporter.h"
#include "rpc/stream_registry.h"
#include "telemetry/metrics.h"
#include "text/turns.h"

namespace linserve {

struct RpcLimits {
  int64_t max_message_bytes = 128 << 20;
  int64_t max_sequences_per_request = 16384;
  int64_t max_requests_per_stream = 256;
  int64_t chunk_bytes = 1 << 20;
  int64_t max_text_bytes = 1 << 20;
  std::chrono::nanoseconds max_upload_pause = std::chrono::minutes(1);
};

// What every call of the services shares.
struct ServiceContext {
  ModelRepository& repository;
  Metrics& metrics;
  RpcLimits limits;
  std::string version;  // of the server
  std::unique_ptr<Access> access;
  std::shared_ptr<Inflight> inflight;
  Turns tokenizers;  // on whose threads texts become token ids
  StreamRegistry streams{};
  LoadReporter load{repository};
  // By which callers may load and unload; null: they may not.
  std::atomic<ModelManager*> manager{nullptr};
  std::atomic<bool> ready{false};
  std::atomic<bool> draining{false};
};

}  // namespace linserve
