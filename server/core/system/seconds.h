#pragma once

#include <chrono>

namespace linserve {

inline double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace linserve
