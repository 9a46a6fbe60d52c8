#include "telemetry/trace.h"

#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <variant>

#include "telemetry/log_format.h"
#include "telemetry/trace_file.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr int kProcess = 1;

// The trace is never destroyed: threads may trace while the process exits.
TraceFile& TheTrace() {
  static auto* const trace = new TraceFile;
  return *trace;
}

// The times of the trace count from here.
std::atomic<TraceTime> beginning;

double Microseconds(TraceTime time) {
  return std::chrono::duration<double, std::micro>(time - beginning.load()).count();
}

std::string Line(const json& event) {
  return event.dump(-1, ' ', false, json::error_handler_t::replace) + ",\n";
}

json Event(const char* phase, std::string_view name) {
  thread_local const int64_t thread = gettid();
  return {{"ph", phase}, {"name", name}, {"pid", kProcess}, {"tid", thread}};
}

json Arguments(std::initializer_list<LogField> fields) {
  json arguments = json::object();
  for (const LogField& field : fields) {
    const auto* const text = std::get_if<std::string>(&field.value);
    if (text == nullptr || !text->empty()) SetFields(arguments, {field});
  }
  return arguments;
}

}  // namespace

void TraceOptions::Bind(OptionTable& table) {
  table.Text("trace", path,
             "File for a trace in Chrome's format (Perfetto shows it): every request, sequence and "
             "batch; empty: none");
  table.Integer("trace_max_bytes", max_bytes, 0, int64_t{1} << 50,
                "How large the trace may grow; then it ends, and serving goes on");
}

absl::Status OpenTrace(const TraceOptions& options) {
  if (options.path.empty()) return absl::OkStatus();
  beginning = std::chrono::steady_clock::now();
  absl::Status status = TheTrace().Open(options.path, options.max_bytes);
  if (!status.ok()) return status;
  json name = Event("M", "process_name");
  name["args"] = {{"name", "linserve"}};
  TheTrace().Write(Line(name));
  return status;
}

void CloseTrace() { TheTrace().Close(); }

bool Tracing() { return TheTrace().open(); }

void NameTraceThread(std::string_view name) {
  if (!Tracing()) return;
  json event = Event("M", "thread_name");
  event["args"] = {{"name", name}};
  TheTrace().Write(Line(event));
}

uint64_t NewTraceLane() {
  static std::atomic<uint64_t> lanes{kTraceThread};
  return ++lanes;
}

void TraceSpan(uint64_t lane, std::string_view name, TraceTime begin, TraceTime end,
               std::initializer_list<LogField> fields) {
  TraceFile& trace = TheTrace();
  if (!trace.open()) return;
  if (lane == kTraceThread) {
    json event = Event("X", name);
    event["ts"] = Microseconds(begin);
    event["dur"] = Microseconds(end) - Microseconds(begin);
    event["args"] = Arguments(fields);
    return trace.Write(Line(event));
  }
  json first = Event("b", name);
  first["cat"] = "request";
  first["id"] = lane;
  json last = first;
  first["ts"] = Microseconds(begin);
  first["args"] = Arguments(fields);
  last["ph"] = "e";
  last["ts"] = Microseconds(end);
  trace.Write(Line(first) + Line(last));
}

}  // namespace linserve
