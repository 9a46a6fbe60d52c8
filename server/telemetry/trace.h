#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "telemetry/log.h"

namespace linserve {

// Where the time goes, as a file of Chrome's trace events (the "Trace Event Format" of Catapult),
// which Perfetto and chrome://tracing draw: a track for each thread that computes, and a lane for
// each request and each sequence. As with the log, there is one for the process.

using TraceTime = std::chrono::steady_clock::time_point;

// Opens the file. Past `max_bytes` nothing more is written, and the log says so. UNAVAILABLE if it
// cannot be written. Call once, before other threads trace.
absl::Status OpenTrace(const std::string& path, int64_t max_bytes);

// Writes out what is buffered. What is traced later is lost.
void CloseTrace();

// Whether there is one: else the rest does nothing, and what it would be told need not be made.
bool Tracing();

// Names the calling thread's track.
void NameTraceThread(std::string_view name);

// A new lane. Spans that lie in each other may share one.
uint64_t NewTraceLane();

// A span of a lane, or of the calling thread's track (kTraceThread). Thread-safe.
inline constexpr uint64_t kTraceThread = 0;
void TraceSpan(uint64_t lane, std::string_view name, TraceTime begin, TraceTime end,
               std::initializer_list<LogField> fields = {});

}  // namespace linserve
