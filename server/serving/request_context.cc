#include "serving/request_context.h"

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "core/strings/utf8.h"
#include "core/system/seconds.h"
#include "telemetry/log.h"
#include "telemetry/trace/trace.h"

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

std::shared_ptr<void> TraceSending(const RequestContext& context) {
  if (!context.trace.traced()) return nullptr;
  return {nullptr, [id = context.id, trace = context.trace,
                    begin = std::chrono::steady_clock::now()](void*) {
            TraceSpan({.name = "stream",
                       .trace_id = trace.trace_id,
                       .id = NewSpanId(),
                       .parent = trace.span,
                       .begin = begin,
                       .end = std::chrono::steady_clock::now(),
                       .fields = {{"request_id", id}}});
          }};
}

void RequestEnded(const RequestContext& context, const RequestRecord& record) {
  const absl::Status& fault = record.status.ok() ? record.fault : record.status;
  const LogLevel level = fault.ok() ? LogLevel::kDebug : InfoAtMostSoOften();
  if (!Logs(level) && !context.trace.traced()) return;
  const TimePoint now = std::chrono::steady_clock::now();
  const LogField id{"request_id", context.id};
  const LogField caller{"caller", context.caller == nullptr ? "" : context.caller->name()};
  const LogField model{"model", record.model};
  const LogField method{"method", record.method};
  const LogField sequences{"sequences", static_cast<int64_t>(record.sequences)};
  const LogField tokens{"tokens", record.tokens};
  const LogField code{"code", std::string(absl::StatusCodeToString(record.status.code()))};
  const LogField faults{"faults", static_cast<int64_t>(record.faults)};
  const LogField error{"error", std::string(fault.message())};
  const LogField queue{"queue_seconds", Seconds(record.queue)};
  const LogField compute{"compute_seconds", Seconds(record.compute)};
  const LogField seconds{"seconds", Seconds(now - context.begin)};
  const LogField trace{"trace_id", context.trace.trace_id};
  std::vector<LogField> fields = {id, caller, model, method, sequences, tokens, code};
  if (record.faults > 0) fields.push_back(faults);
  if (!fault.ok()) fields.push_back(error);
  std::vector<LogField> logged = fields;
  if (record.compute.count() > 0) logged.insert(logged.end(), {queue, compute});
  logged.push_back(seconds);
  if (!context.trace.trace_id.empty()) logged.push_back(trace);
  Log(level, "request finished", logged);
  if (!context.trace.traced()) return;
  TraceSpan({.name = record.method,
             .trace_id = context.trace.trace_id,
             .id = context.trace.span,
             .parent = context.trace.parent,
             .of_request = true,
             .begin = context.begin,
             .end = now,
             .fields = std::move(fields)});
}

}  // namespace linserve
