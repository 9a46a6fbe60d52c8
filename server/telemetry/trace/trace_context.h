#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace linserve {

// Says which trace a request is part of, as W3C's Trace Context has it.
struct TraceContext {
  std::string trace_id{};  // of 32 hexadecimal digits; "": there is none
  uint64_t parent = 0;     // the caller's span; 0: there is none
  bool sampled = false;    // whether the caller keeps the trace
  uint64_t span = 0;       // the request's own span; 0: it is not traced here

  bool traced() const { return span != 0; }
};

// Reads a `traceparent` header. What is none gives a context without a trace.
TraceContext ReadTraceparent(std::string_view traceparent);

// Return new ids, which are random and not zero.
std::string NewTraceId();
uint64_t NewSpanId();

// Says whether a trace is among the share of all, from 0 to 1, that is kept. Whoever decides so by
// the id keeps the same traces.
bool IsSampled(std::string_view trace_id, double share);

}  // namespace linserve
