#pragma once

#include <chrono>
#include <cstdint>

namespace linserve {

// Says how many callers there may be, and how long they may take. What they may send stands in
// framing/.
struct HttpLimits {
  int connections = 8192;  // open at once; for another one that has waited the longest is ended
  int threads = 1024;      // requests at once whose heads have come; others wait for a thread
  std::chrono::milliseconds idle{75'000};      // between requests, as callers are told
  std::chrono::milliseconds grace{1000};       // beyond `idle`, for a request that is on its way
  std::chrono::milliseconds linger{1000};      // until a caller has seen the last answer
  std::chrono::milliseconds patience{10'000};  // for the handshake, and for the head of a request
  std::chrono::milliseconds stall{30'000};     // while nothing of a body comes, of an answer goes
  int64_t bytes_per_second = 16 << 10;         // of a body or an answer, once `patience` is over
};

}  // namespace linserve
