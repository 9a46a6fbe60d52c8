#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "access/caller.h"
#include "core/threads/clock.h"

namespace linserve {

// Bounds ids and names in bytes, whatever the protocol, because they stand in every answer, in what
// is kept of a request and in log lines.
inline constexpr size_t kMaxIdBytes = 128;

// Returns `given`, shortened, or a new id if `given` is empty.
std::string RequestIdOr(const std::string& given);

// Returns the trace that a W3C `traceparent` header names; "" if it is none.
std::string TraceIdOf(std::string_view traceparent);

// Says who sends a request, and until when.
struct RequestContext {
  std::string id{};
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<const Caller> caller{};
  std::string trace_id{};  // id of the caller's trace, if it has one
  TimePoint begin = std::chrono::steady_clock::now();
};

// Returns what an answer is to hold until it is sent, so that the trace shows how long that took.
std::shared_ptr<void> TraceSending(const RequestContext& context);

// Logs that a request ended now, and how, and traces it.
void RequestEnded(const RequestContext& context, const std::string& rpc, const std::string& model,
                  size_t sequences, const absl::Status& status);

}  // namespace linserve
