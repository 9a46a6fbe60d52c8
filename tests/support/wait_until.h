#pragma once

#include <chrono>
#include <thread>

namespace linserve {

// Waits for a condition that something else brings about; returns false if it has not come within a
// minute.
template <typename Condition>
[[nodiscard]] bool WaitUntil(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace linserve
