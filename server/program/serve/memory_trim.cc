#include "program/serve/memory_trim.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "telemetry/process_stat.h"

namespace linserve {
namespace {

constexpr int64_t kIdleSeconds = 2;
// Giving back a quarter of a gigabyte and asking for it again takes 0.1 s: a hundredth of this
// time.
constexpr int64_t kLeastSeconds = 10;
constexpr int64_t kMostSeconds = 80;
constexpr double kGrown = 16 << 20;

double ResidentBytes() {
  const auto process = ReadProcessStat();
  return process ? process->resident_bytes : 0;
}

}  // namespace

MemoryTrim::MemoryTrim(std::shared_ptr<const Inflight> inflight)
    : inflight_(std::move(inflight)), periodic_([this] {
        Look();
        return std::chrono::seconds(1);
      }) {}

void MemoryTrim::Look() {
  const int64_t ever = inflight_->requests_ever();
  idle_ = ever == seen_ && inflight_->requests() == 0 ? idle_ + 1 : 0;
  seen_ = ever;
  ++seconds_;
  if (idle_ == kIdleSeconds) {
    Trim();
    pause_ = kLeastSeconds;
    least_ = resident_;
    return;
  }
  if (seconds_ < kLeastSeconds) return;
  const double before = ResidentBytes();
  const bool has_grown = before - resident_ >= kGrown;
  const bool has_more = seconds_ >= pause_ && before - least_ >= kGrown;
  if (!has_grown && !has_more) return;
  Trim();
  const bool pays = has_grown || before - resident_ >= kGrown;
  pause_ = pays ? kLeastSeconds : std::min(2 * pause_, kMostSeconds);
  least_ = std::min(least_, resident_);
}

void MemoryTrim::Trim() {
  malloc_trim(0);
  seconds_ = 0;
  resident_ = ResidentBytes();
}

}  // namespace linserve
