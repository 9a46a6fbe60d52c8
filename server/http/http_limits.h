#pragma once

#include <chrono>
#include <cstdint>

namespace linserve {

// Says how many callers there may be, and how long they may take. What they may send stands in
// framing/.
struct HttpLimits {
  int connections = 1024;                      // open at once; others wait to be accepted
  std::chrono::milliseconds idle{1000};        // between requests, and after the last answer
  std::chrono::milliseconds patience{10'000};  // for the handshake, and for the head of a request
  std::chrono::milliseconds stall{5000};       // while nothing of a body comes, of an answer goes
  int64_t bytes_per_second = 16 << 10;         // of a body or an answer, once `patience` is over
};

}  // namespace linserve
