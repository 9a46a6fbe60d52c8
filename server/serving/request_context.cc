#include "serving/request_context.h"

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <random>

#include "core/status/utf8.h"
#include "core/system/seconds.h"
#include "telemetry/log.h"
#include "telemetry/trace.h"

namespace linserve {
namespace {

// Makes an id that the counter makes unique in this process, and the random part among processes.
std::string NewRequestId() {
  static const uint64_t process = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  static std::atomic<uint64_t> counter{0};
  char text[40];
  std::snprintf(text, sizeof(text), "%016" PRIx64 "-%" PRIu64, process, ++counter);
  return text;
}

}  // namespace

std::string RequestIdOr(const std::string& given) {
  return given.empty() ? NewRequestId() : std::string(CutAtCharacter(given, kMaxIdBytes));
}

std::string TraceIdOf(std::string_view traceparent) {
  // The header is VERSION-TRACE-SPAN-FLAGS, of 2, 32, 16 and 2 lower-case hexadecimal digits; later
  // versions may have more.
  constexpr size_t kBegin = 3;
  constexpr size_t kDigits = 32;
  constexpr size_t kParent = 36;
  constexpr size_t kParentDigits = 16;
  constexpr size_t kLength = 55;
  constexpr std::string_view kNone = "00000000000000000000000000000000";
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (traceparent.size() < kLength || traceparent.starts_with("ff")) return "";
  for (size_t i = 0; i < kLength; ++i) {
    const bool dash = i == 2 || i == 35 || i == 52;
    if (dash ? traceparent[i] != '-' : !is_digit(traceparent[i])) return "";
  }
  if (traceparent.size() > kLength &&
      (traceparent.starts_with("00") || traceparent[kLength] != '-')) {
    return "";
  }
  const std::string_view id = traceparent.substr(kBegin, kDigits);
  const bool valid = id != kNone && !kNone.starts_with(traceparent.substr(kParent, kParentDigits));
  return valid ? std::string(id) : "";
}

std::shared_ptr<void> TraceSending(const RequestContext& context) {
  if (!Tracing()) return nullptr;
  return {nullptr, [id = context.id, trace_id = context.trace_id,
                    begin = std::chrono::steady_clock::now()](void*) {
            TraceSpan(NewTraceLane(), "stream", begin, std::chrono::steady_clock::now(),
                      {{"request_id", id}, {"trace_id", trace_id}});
          }};
}

void RequestEnded(const RequestContext& context, const std::string& rpc, const std::string& model,
                  size_t sequences, const absl::Status& status) {
  const TimePoint now = std::chrono::steady_clock::now();
  const LogField id{"request_id", context.id};
  const LogField caller{"caller", context.caller == nullptr ? "" : context.caller->name()};
  const LogField of_model{"model", model};
  const LogField count{"sequences", static_cast<int64_t>(sequences)};
  const LogField code{"code", std::string(absl::StatusCodeToString(status.code()))};
  const LogField seconds{"seconds", Seconds(now - context.begin)};
  const LogField trace{"trace_id", context.trace_id};
  const LogLevel level = status.ok() ? LogLevel::kDebug : InfoAtMostSoOften();
  if (context.trace_id.empty()) {
    Log(level, "request finished", {id, caller, of_model, count, code, seconds});
  } else {
    Log(level, "request finished", {id, caller, of_model, count, code, seconds, trace});
  }
  if (!Tracing()) return;
  TraceSpan(NewTraceLane(), rpc, context.begin, now, {id, trace, caller, of_model, count, code});
}

}  // namespace linserve
