#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "access/caller.h"
#include "core/threads/clock.h"
#include "telemetry/trace/trace_context.h"

namespace linserve {

// Bounds ids and names in bytes, whatever the protocol, because they stand in every answer, in what
// is kept of a request and in log lines.
inline constexpr size_t kMaxIdBytes = 128;

// Returns `given`, shortened, or a new id if `given` is empty.
std::string RequestIdOr(const std::string& given);

// Says who sends a request, and until when.
struct RequestContext {
  std::string id{};
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<const Caller> caller{};
  TraceContext trace{};
  TimePoint begin = std::chrono::steady_clock::now();
  int64_t body_bytes = 0;  // of Inflight, that are reserved for its body beside the request
};

// Returns what an answer is to hold until it is sent, so that the trace shows how long that took.
std::shared_ptr<void> TraceSending(const RequestContext& context);

// Says what a request was that has ended.
struct RequestRecord {
  const std::string& method;  // as the metrics name it: "Embed", "/embed"
  const std::string& model;   // "": none was found
  size_t sequences = 0;
  int64_t tokens = 0;  // of the sequences that were computed, or whose results were kept
  std::chrono::nanoseconds queue{0};    // the longest that one of them waited
  std::chrono::nanoseconds compute{0};  // the longest that one of their batches took
  const absl::Status& status;
  size_t faults = 0;          // sequences that failed by themselves
  const absl::Status& fault;  // of one of them
};

// Logs that a request ended now, and how, and traces it.
void RequestEnded(const RequestContext& context, const RequestRecord& record);

}  // namespace linserve
