#include "core/status/retry_delay.h"

#include <charconv>

#include "absl/strings/cord.h"

namespace linserve {
namespace {

constexpr const char* kRetryDelayPayload = "linserve/retry-delay-ms";
constexpr const char* kNeverFits = "linserve/never-fits";

}  // namespace

absl::Status RetryAfter(absl::Status status, std::chrono::milliseconds delay) {
  if (IsNeverFits(status)) return status;
  status.SetPayload(kRetryDelayPayload, absl::Cord(std::to_string(delay.count())));
  return status;
}

std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  int64_t milliseconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  return std::chrono::milliseconds(milliseconds);
}

absl::Status NeverFits(absl::Status status) {
  status.SetPayload(kNeverFits, absl::Cord());
  return status;
}

bool IsNeverFits(const absl::Status& status) { return status.GetPayload(kNeverFits).has_value(); }

absl::Status WithPrefix(const absl::Status& status, const std::string& prefix) {
  absl::Status prefixed(status.code(), prefix + std::string(status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { prefixed.SetPayload(url, payload); });
  return prefixed;
}

}  // namespace linserve
