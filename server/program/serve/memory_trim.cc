#include "program/serve/memory_trim.h"

#include <malloc.h>

#include <chrono>
#include <utility>

#include "telemetry/process_stat.h"

namespace linserve {
namespace {

constexpr int64_t kIdleSeconds = 2;
// Giving back a quarter of a gigabyte and asking for it again takes 0.1 s: a hundredth of this
// time.
constexpr int64_t kLeastSeconds = 10;
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
  if (idle_ != kIdleSeconds && !HasGrown()) return;
  malloc_trim(0);
  seconds_ = 0;
  resident_ = ResidentBytes();
}

bool MemoryTrim::HasGrown() const {
  return seconds_ >= kLeastSeconds && ResidentBytes() - resident_ >= kGrown;
}

}  // namespace linserve
