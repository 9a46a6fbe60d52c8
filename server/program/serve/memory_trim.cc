#include "program/serve/memory_trim.h"

#include <malloc.h>

#include <chrono>
#include <utility>

namespace linserve {
namespace {

constexpr int64_t kIdleSeconds = 2;
constexpr int64_t kMostSeconds = 60;

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
  if (idle_ != kIdleSeconds && seconds_ < kMostSeconds) return;
  seconds_ = 0;
  malloc_trim(0);
}

}  // namespace linserve
