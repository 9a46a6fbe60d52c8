#include "telemetry/trace/trace_context.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <random>

namespace linserve {
namespace {

constexpr size_t kTraceDigits = 32;
constexpr size_t kSpanDigits = 16;

bool IsHexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Returns the number that hexadecimal digits, at most 16, stand for.
uint64_t NumberOf(std::string_view digits) {
  uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

// Returns a random number (SplitMix64, of Steele, Lea and Flood 2014) without a lock.
uint64_t RandomNumber() {
  static std::atomic<uint64_t> state{(uint64_t{std::random_device{}()} << 32) |
                                     std::random_device{}()};
  uint64_t mixed = state.fetch_add(0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace

TraceContext ReadTraceparent(std::string_view traceparent) {
  // The header is VERSION-TRACE-SPAN-FLAGS, of 2, 32, 16 and 2 lower-case hexadecimal digits; later
  // versions may have more.
  constexpr size_t kTrace = 3;
  constexpr size_t kSpan = kTrace + kTraceDigits + 1;
  constexpr size_t kFlags = kSpan + kSpanDigits + 1;
  constexpr size_t kLength = kFlags + 2;
  constexpr uint64_t kSampled = 1;
  if (traceparent.size() < kLength || traceparent.starts_with("ff")) return {};
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace = traceparent.substr(kTrace, kTraceDigits);
  const std::string_view span = traceparent.substr(kSpan, kSpanDigits);
  const std::string_view flags = traceparent.substr(kFlags, 2);
  for (const std::string_view part : {version, trace, span, flags}) {
    if (!IsHexadecimal(part)) return {};
  }
  for (const size_t dash : {kTrace - 1, kSpan - 1, kFlags - 1}) {
    if (traceparent[dash] != '-') return {};
  }
  if (traceparent.size() > kLength && (version == "00" || traceparent[kLength] != '-')) return {};
  const uint64_t parent = NumberOf(span);
  if (parent == 0 || trace == std::string(kTraceDigits, '0')) return {};
  return {.trace_id = std::string(trace),
          .parent = parent,
          .sampled = (NumberOf(flags) & kSampled) != 0};
}

std::string NewTraceId() {
  char digits[kTraceDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64 "%016" PRIx64, NewSpanId(), NewSpanId());
  return digits;
}

uint64_t NewSpanId() {
  uint64_t id = 0;
  while (id == 0) id = RandomNumber();
  return id;
}

bool IsSampled(std::string_view trace_id, double share) {
  // Level 2 of the standard has the last 56 bits random.
  constexpr size_t kRandomDigits = 14;
  const auto random = NumberOf(trace_id.substr(kTraceDigits - kRandomDigits));
  return static_cast<double>(random) < std::ldexp(share, 4 * kRandomDigits);
}

}  // namespace linserve
