#include "telemetry/recent_metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json/json_text.h"

namespace linserve {
namespace {

using nlohmann::json;

// What the status page draws, and shows of each model.
constexpr auto kShown = std::to_array<std::string_view>({
    "linserve_batch_sequences_count",
    "linserve_batch_sequences_sum",
    "linserve_cache_lookups_total",
    "linserve_device_memory_limit_bytes",
    "linserve_device_memory_used_bytes",
    "linserve_in_flight_requests",
    "linserve_memory_limit_bytes",
    "linserve_model_bytes",
    "linserve_open_streams",
    "linserve_padded_tokens_total",
    "linserve_queue_delay_estimate_seconds",
    "linserve_queue_sequences",
    "linserve_refused_total",
    "linserve_rejected_total",
    "linserve_replicas",
    "linserve_replicas_lost",
    "linserve_request_duration_seconds_bucket",
    "linserve_requests_total",
    "linserve_sequences_total",
    "linserve_sessions",
    "linserve_tokens_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
});
static_assert(std::is_sorted(kShown.begin(), kShown.end()));

// Calls `take` with the name, labels included, and the value of each series that is shown.
void ForShown(std::string_view metrics, const std::function<void(std::string_view, double)>& take) {
  while (!metrics.empty()) {
    const size_t end = std::min(metrics.find('\n'), metrics.size());
    const std::string_view line = metrics.substr(0, end);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    const size_t space = line.rfind(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view series = line.substr(0, space);
    const std::string_view name = series.substr(0, series.find('{'));
    if (!std::binary_search(kShown.begin(), kShown.end(), name)) continue;
    double value = 0;
    const auto parsed = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    if (parsed.ec == std::errc() && std::isfinite(value)) take(series, value);
  }
}

double UnixSeconds(RecentMetrics::Time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Writes whole numbers as such, which are shorter.
json AsJson(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (std::isnan(value)) return nullptr;
  if (std::floor(value) == value && std::abs(value) < kExact) return static_cast<int64_t>(value);
  return value;
}

}  // namespace

void RecentMetrics::Add(Time time, std::string_view metrics) {
  constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
  MutexLock lock(mutex_);
  const size_t place = count_ % kSamples;
  times_[place] = UnixSeconds(time);
  for (auto& [name, series] : series_) series.values[place] = kAbsent;
  ForShown(metrics, [&](std::string_view name, double value) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    auto found = series_.find(name);
    if (found == series_.end()) {
      if (series_.size() >= kMostSeries) return;
      found = series_.emplace(name, Series{}).first;
      found->second.values.fill(kAbsent);
    }
    found->second.values[place] = value;
    found->second.last = count_;
  });
  ++count_;
  std::erase_if(series_, [&](const auto& entry) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return entry.second.last + kSamples < count_;
  });
}

std::string RecentMetrics::ToJson() const {
  MutexLock lock(mutex_);
  const size_t kept = std::min(count_, kSamples);
  const auto in_order = [&](const std::array<double, kSamples>& ring)
                            ABSL_NO_THREAD_SAFETY_ANALYSIS {
                              json list = json::array();
                              for (size_t i = count_ - kept; i < count_; ++i)
                                list.push_back(AsJson(ring[i % kSamples]));
                              return list;
                            };
  json series = json::object();
  for (const auto& [name, one] : series_) {
    json values = in_order(one.values);
    const bool constant = std::all_of(values.begin(), values.end(),
                                      [&](const json& value) { return value == values[0]; });
    if (constant) values = json(values[0]);
    series[name] = std::move(values);
  }
  return JsonText(json{{"times", in_order(times_)}, {"series", std::move(series)}});
}

std::string RecentMetrics::ToJson(Time time, std::string_view metrics) {
  json series = json::object();
  ForShown(metrics,
           [&](std::string_view name, double value) { series[std::string(name)] = AsJson(value); });
  return JsonText(json{{"times", {UnixSeconds(time)}}, {"series", std::move(series)}});
}

}  // namespace linserve
