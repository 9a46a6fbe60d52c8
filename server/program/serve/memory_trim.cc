#include "program/serve/memory_trim.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace linserve {
namespace {

constexpr int64_t kIdleSeconds = 2;
constexpr int64_t kMostSeconds = 60;
// To give back and to ask for a quarter of a gigabyte takes some 0.1 s: a hundredth of this time.
constexpr int64_t kLeastSeconds = 10;
constexpr int64_t kLarge = 16 << 20;

}  // namespace

MemoryTrim::MemoryTrim(std::shared_ptr<Inflight> inflight)
    : inflight_(std::move(inflight)), periodic_([this] {
        Look();
        return std::chrono::seconds(1);
      }) {}

void MemoryTrim::Look() {
  const int64_t ever = inflight_->requests_ever();
  idle_ = ever == seen_ && inflight_->requests() == 0 ? idle_ + 1 : 0;
  seen_ = ever;
  ++seconds_;
  const int64_t most = inflight_->TakeMostBytes();  // at least what is in flight now
  most_ = std::max(most_, most);
  const bool fallen = seconds_ >= kLeastSeconds && most_ - most >= kLarge;
  if (idle_ != kIdleSeconds && !fallen && seconds_ < kMostSeconds) return;
  seconds_ = 0;
  most_ = 0;
  malloc_trim(0);
}

}  // namespace linserve
