#include "rpc/call_context.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <random>

namespace linserve {
namespace {

// Unique in this process by the counter, among processes by the random part.
std::string NewRequestId() {
  static const uint64_t process = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  static std::atomic<uint64_t> counter{0};
  char text[40];
  std::snprintf(text, sizeof(text), "%016" PRIx64 "-%" PRIu64, process, ++counter);
  return text;
}

}  // namespace

TimePoint DeadlineOf(const grpc::ServerContextBase& context) {
  const auto deadline = context.deadline();
  const auto now = std::chrono::system_clock::now();
  // Past any real deadline, which also keeps the sum below from overflowing.
  constexpr auto kNever = std::chrono::hours(24 * 365);
  if (deadline > now + kNever) return TimePoint::max();
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline - now);
}

std::string RequestIdOf(const grpc::ServerContextBase& context, const std::string& given) {
  const auto found = context.client_metadata().find("x-request-id");
  const bool usable = found != context.client_metadata().end() && !found->second.empty() &&
                      found->second.size() <= kLongestRequestId;
  if (usable) return {found->second.data(), found->second.size()};
  return given.empty() ? NewRequestId() : given;
}

std::chrono::milliseconds RetryDelayOf(const Engine& engine) {
  constexpr std::chrono::milliseconds kShortest(10);
  return std::max(kShortest,
                  std::chrono::duration_cast<std::chrono::milliseconds>(engine.DelayEstimate()));
}

void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load) {
  context.AddTrailingMetadata("endpoint-load-metrics-bin", load.Report());
}

void AddRetryDelay(grpc::ServerContextBase& context, std::chrono::milliseconds delay) {
  context.AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(delay.count()));
}

}  // namespace linserve
