#include "rest/tei/tei_reply.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace linserve {

void AddTimes(const RestCall& call, const Timing& timing, int64_t tokens, HttpReply& reply) {
  using std::chrono::nanoseconds;
  const nanoseconds total = std::chrono::steady_clock::now() - call.begin;
  const nanoseconds queue = timing.queue + timing.batch;
  const auto add = [&reply](const char* name, nanoseconds time) {
    const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(time);
    reply.headers.emplace_back(name, std::to_string(whole.count()));
  };
  reply.headers.emplace_back("x-compute-tokens", std::to_string(tokens));
  add("x-compute-time", total);
  add("x-total-time", total);
  add("x-tokenization-time", std::max(nanoseconds(0), total - queue - timing.compute));
  add("x-queue-time", queue);
  add("x-inference-time", timing.compute);
}

}  // namespace linserve
