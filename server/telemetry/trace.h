#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/options/options.h"
#include "telemetry/log.h"

namespace linserve {

// The trace shows where the time goes, as a file of Chrome's trace events (the "Trace Event Format"
// of Catapult), which Perfetto and chrome://tracing draw. It has a track for each thread that
// computes, and a lane for each request and each sequence. As with the log, there is one trace for
// the process.

using TraceTime = std::chrono::steady_clock::time_point;

struct TraceOptions {
  std::string path;  // empty: there is no trace
  int64_t max_bytes = 256 << 20;

  void Bind(OptionTable& table);
};

// Opens the file, if there is to be one. Past `max_bytes` nothing more is written, and the log says
// so. Returns UNAVAILABLE if the file cannot be written. Call it once, before other threads trace.
absl::Status OpenTrace(const TraceOptions& options);

// Writes out what is buffered. What is traced later is lost.
void CloseTrace();

// Returns whether there is a trace: if not, the other functions do nothing, and what they would be
// told need not be made.
bool Tracing();

// Names the calling thread's track.
void NameTraceThread(std::string_view name);

// Returns a new lane. Spans that lie in each other may share one.
uint64_t NewTraceLane();

// Puts a span into a lane, or into the calling thread's track (kTraceThread). Thread-safe.
inline constexpr uint64_t kTraceThread = 0;
void TraceSpan(uint64_t lane, std::string_view name, TraceTime begin, TraceTime end,
               std::initializer_list<LogField> fields = {});

}  // namespace linserve
