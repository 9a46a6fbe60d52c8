#pragma once

#include <chrono>
#include <cstdint>

#include "core/options/options.h"

namespace linserve {

// Bounds one message, one request and one stream.
struct RpcLimits {
  int64_t max_message_bytes = 128 << 20;
  int64_t max_metadata_bytes = 16 << 10;
  int64_t max_sequences_per_request = 16384;
  int64_t max_text_bytes = 1 << 20;
  std::chrono::nanoseconds max_upload_pause = std::chrono::minutes(1);
  int64_t max_requests_per_stream = 256;
  int64_t chunk_bytes = 1 << 20;

  void Bind(OptionTable& table);
};

}  // namespace linserve
