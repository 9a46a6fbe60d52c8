#include "idle_memory.h"

#include <malloc.h>

#include <chrono>
#include <utility>

namespace linserve {
namespace {

constexpr std::chrono::seconds kPeriod(1);

}  // namespace

IdleMemory::IdleMemory(std::shared_ptr<const Inflight> inflight)
    : inflight_(std::move(inflight)), thread_([this] { Run(); }) {}

IdleMemory::~IdleMemory() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

void IdleMemory::Run() {
  int64_t seen = 0;     // requests ever
  int64_t periods = 0;  // without any
  MutexLock lock(mutex_);
  while (!stopping_) {
    stop_.WaitUntil(lock, std::chrono::steady_clock::now() + kPeriod);
    const int64_t ever = inflight_->requests_ever();
    periods = ever == seen && inflight_->requests() == 0 ? periods + 1 : 0;
    seen = ever;
    // Again, since calls that never became requests leave memory, too.
    if (periods % 30 == 2) malloc_trim(0);
  }
}

}  // namespace linserve
