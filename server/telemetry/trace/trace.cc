#include "telemetry/trace/trace.h"

#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "core/options/listen_address.h"
#include "telemetry/log_format.h"
#include "telemetry/trace/trace_file.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr int kProcess = 1;

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kTls = "https://";

// The trace is never destroyed: threads may trace while the process exits.
struct Trace {
  TraceFile file;
  SpanQueue sent;
  double sample_ratio = 1;
  std::atomic<TraceTime> beginning;  // from which the times of the file count
};

Trace& TheTrace() {
  static auto* const trace = new Trace;
  return *trace;
}

double Microseconds(TraceTime time) {
  return std::chrono::duration<double, std::micro>(time - TheTrace().beginning.load()).count();
}

std::string Line(const json& event) {
  return event.dump(-1, ' ', false, json::error_handler_t::replace) + ",\n";
}

json Event(const char* phase, std::string_view name) {
  thread_local const int64_t thread = gettid();
  return {{"ph", phase}, {"name", name}, {"pid", kProcess}, {"tid", thread}};
}

template <typename Fields>
json Arguments(const Fields& fields) {
  json arguments = json::object();
  for (const LogField& field : fields) {
    const auto* const text = std::get_if<std::string>(&field.value);
    if (text == nullptr || !text->empty()) SetFields(arguments, {field});
  }
  return arguments;
}

// Writes a span into its lane. The ids of lanes are texts, since readers of JSON round long
// numbers.
std::string LinesOf(const EndedSpan& span) {
  json first = Event("b", span.name);
  first["cat"] = "request";
  first["id"] = absl::StrFormat("%016x", span.within == 0 ? span.id : span.within);
  json last = first;
  first["ts"] = Microseconds(span.begin);
  first["args"] = Arguments(span.fields);
  if (span.within == 0) first["args"]["trace_id"] = span.trace_id;
  last["ph"] = "e";
  last["ts"] = Microseconds(span.end);
  return Line(first) + Line(last);
}

}  // namespace

absl::StatusOr<CollectorAddress> CollectorAddress::Parse(const std::string& text) {
  CollectorAddress address{.tls = text.starts_with(kTls)};
  const std::string_view scheme = address.tls ? kTls : kPlain;
  const auto parsed = text.starts_with(scheme) ? ListenAddress::Parse(text.substr(scheme.size()))
                                               : absl::InvalidArgumentError("");
  if (!parsed.ok() || parsed->host.empty() || parsed->port == 0) {
    return absl::InvalidArgumentError(
        "expected http://HOST:PORT, or https://HOST:PORT for TLS, of a collector that takes OTLP "
        "by gRPC, such as http://127.0.0.1:4317");
  }
  address.target = parsed->ToString();
  return address;
}

std::string CollectorAddress::ToString() const {
  if (target.empty()) return "";
  return std::string(tls ? kTls : kPlain) + target;
}

void TraceOptions::Bind(OptionTable& table) {
  table.Text("trace", path,
             "File for a trace in Chrome's format (Perfetto shows it): every request, sequence and "
             "batch; empty: none");
  table.Bytes("trace_max_bytes", max_bytes, 0, int64_t{1} << 50,
              "How large the trace may grow; then it ends, and serving goes on");
  table.Parsed(
      "otlp_endpoint",
      [this](const std::string& text) -> absl::Status {
        auto parsed = text.empty() ? CollectorAddress() : CollectorAddress::Parse(text);
        if (!parsed.ok()) return parsed.status();
        collector = *std::move(parsed);
        return absl::OkStatus();
      },
      [this] { return collector.ToString(); },
      "http://HOST:PORT, or https://, of a collector to which the spans of requests and sequences "
      "are sent (OpenTelemetry's OTLP by gRPC, port 4317); empty: none");
  table.Number("trace_sample_ratio", sample_ratio, 0, 1,
               "Which share of the requests is traced whose caller sends no traceparent; of others "
               "the caller decides");
}

absl::Status OpenTrace(const TraceOptions& options) {
  Trace& trace = TheTrace();
  trace.sample_ratio = options.sample_ratio;
  if (options.path.empty()) return absl::OkStatus();
  trace.beginning = std::chrono::steady_clock::now();
  absl::Status status = trace.file.Open(options.path, options.max_bytes);
  if (!status.ok()) return status;
  json name = Event("M", "process_name");
  name["args"] = {{"name", "linserve"}};
  trace.file.Write(Line(name));
  return status;
}

void SendSpans(std::unique_ptr<SpanSender> sender, Metrics& metrics, const SpanPolicy& policy) {
  TheTrace().sent.Open(std::move(sender), metrics, policy);
}

void CloseTrace(TraceTime deadline) {
  TheTrace().sent.Close(deadline);
  TheTrace().file.Close();
}

bool Tracing() { return TheTrace().file.open() || TheTrace().sent.open(); }

void BeginTrace(TraceContext& trace) {
  if (!Tracing()) return;
  if (trace.trace_id.empty()) {
    std::string id = NewTraceId();
    trace.sampled = IsSampled(id, TheTrace().sample_ratio);
    if (trace.sampled) trace.trace_id = std::move(id);
  }
  trace.span = trace.sampled ? NewSpanId() : 0;
}

void TraceSpan(EndedSpan span) {
  Trace& trace = TheTrace();
  if (trace.file.open()) trace.file.Write(LinesOf(span));
  if (trace.sent.open()) trace.sent.Add(std::move(span));
}

void NameTraceThread(std::string_view name) {
  TraceFile& file = TheTrace().file;
  if (!file.open()) return;
  json event = Event("M", "thread_name");
  event["args"] = {{"name", name}};
  file.Write(Line(event));
}

void TraceOnThread(std::string_view name, TraceTime begin, TraceTime end,
                   std::initializer_list<LogField> fields) {
  TraceFile& file = TheTrace().file;
  if (!file.open()) return;
  json event = Event("X", name);
  event["ts"] = Microseconds(begin);
  event["dur"] = Microseconds(end) - Microseconds(begin);
  event["args"] = Arguments(fields);
  file.Write(Line(event));
}

}  // namespace linserve
