#include "rpc/call_context.h"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <random>

#include "core/retry_delay.h"

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

absl::StatusOr<std::shared_ptr<const Caller>> CallerOf(const grpc::ServerContextBase& context,
                                                       Access& access) {
  const auto found = context.client_metadata().find("authorization");
  std::string_view header;
  if (found != context.client_metadata().end()) {
    header = {found->second.data(), found->second.size()};
  }
  return access.Authenticate(header, context.peer());
}

void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load) {
  context.AddTrailingMetadata("endpoint-load-metrics-bin", load.Report());
}

void AddRetryDelay(grpc::ServerContextBase& context, const absl::Status& status) {
  const auto delay = RetryDelayOf(status);
  if (!delay) return;
  context.AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(delay->count()));
}

}  // namespace linserve
