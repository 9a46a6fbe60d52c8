#include "core/threads/clock.h"

namespace linserve {
namespace {

class RealClock : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  void WaitUntil(MutexLock& lock, CondVar& condition, TimePoint time) override {
    condition.WaitUntil(lock, time);
  }
};

}  // namespace

Clock& SteadyClock() {
  static RealClock clock;
  return clock;
}

}  // namespace linserve
