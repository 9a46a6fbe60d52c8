#include "idle_memory.h"

#include <malloc.h>

#include <chrono>
#include <utility>

namespace linserve {
namespace {

constexpr std::chrono::seconds kPeriod(1);

}  // namespace

IdleMemory::IdleMemory(std::shared_ptr<const Inflight> inflight)
    : inflight_(std::move(inflight)), periodic_([this] {
        Look();
        return kPeriod;
      }) {}

void IdleMemory::Look() {
  const int64_t ever = inflight_->requests_ever();
  periods_ = ever == seen_ && inflight_->requests() == 0 ? periods_ + 1 : 0;
  seen_ = ever;
  // Again, since calls that never became requests leave memory, too.
  if (periods_ % 30 == 2) malloc_trim(0);
}

}  // namespace linserve
