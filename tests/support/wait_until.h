#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace linserve {

// Waits for a condition that something else brings about; returns false if it has not come within a
// minute.
template <typename Condition>
[[nodiscard]] bool WaitUntil(const Condition& condition) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto limit = now() + std::chrono::minutes(1);
  for (;;) {
    const auto start = now();
    if (condition()) return true;
    const auto end = now();
    if (end > limit) return false;
    // Whoever asks for the metrics all the time leaves little to those who are waited for.
    std::this_thread::sleep_for(
        std::max<std::chrono::nanoseconds>(std::chrono::milliseconds(1), 4 * (end - start)));
  }
}

}  // namespace linserve
