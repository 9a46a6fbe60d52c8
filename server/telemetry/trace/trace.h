#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/options/options.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "telemetry/trace/ended_span.h"
#include "telemetry/trace/span_queue.h"
#include "telemetry/trace/trace_context.h"

namespace linserve {

// The trace shows where the time goes. Its spans go into a file of Chrome's trace events (the
// "Trace Event Format" of Catapult), which Perfetto and chrome://tracing draw, with a track for
// each thread that computes, and a lane for each request and each sequence; and to a collector of
// OpenTelemetry's. As with the log, there is one trace for the process.

// Says where the spans of OpenTelemetry's collector are sent.
struct CollectorAddress {
  std::string target{};  // HOST:PORT; empty: there is none
  bool tls = false;

  // Parses "http://HOST:PORT" or "https://HOST:PORT". INVALID_ARGUMENT says what was expected.
  static absl::StatusOr<CollectorAddress> Parse(const std::string& text);
  std::string ToString() const;
};

struct TraceOptions {
  std::string path;  // empty: there is no file
  int64_t max_bytes = 256 << 20;
  CollectorAddress collector{};
  double sample_ratio = 1;

  void Bind(OptionTable& table);
};

// Opens the file, if there is to be one. Past `max_bytes` nothing more is written, and the log says
// so. Returns UNAVAILABLE if the file cannot be written. Call it once, before other threads trace.
absl::Status OpenTrace(const TraceOptions& options);

// Sends the spans of requests, too, from now on. `metrics` must be there until CloseTrace().
void SendSpans(std::unique_ptr<SpanSender> sender, Metrics& metrics, const SpanPolicy& policy = {});

// Writes out what is buffered, and sends what waits, until the deadline at the latest. What is
// traced later is lost.
void CloseTrace(TraceTime deadline = TraceTime::min());

// Returns whether there is a trace: if not, nothing of what is traced need be made.
bool Tracing();

// Decides whether a request is traced, as its caller has, or by trace_sample_ratio where the caller
// sent no trace, and gives it a span. What is not traced has no span, and no part of it has.
void BeginTrace(TraceContext& trace);

// Traces a span of a traced request. Thread-safe.
void TraceSpan(EndedSpan span);

// Names the calling thread's track of the file.
void NameTraceThread(std::string_view name);

// Puts what the calling thread did for several requests into its track of the file. Thread-safe.
void TraceOnThread(std::string_view name, TraceTime begin, TraceTime end,
                   std::initializer_list<LogField> fields = {});

}  // namespace linserve
