#pragma once

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/threads/mutex.h"
#include "models/placement/placement.h"

namespace linserve {

// Is the code of an AcceleratorError that says that there is no memory: cudaErrorMemoryAllocation.
inline constexpr int32_t kOutOfMemory = 2;

// Returns what LibTorch says of an error, without its advice on environment variables.
std::string FirstLine(const c10::Error& error);

// Returns what the exception that is being handled says. UNAVAILABLE: the device is lost.
absl::Status StatusOfException(const Placement& placement);

// Calls the function. This is the one place where LibTorch's exceptions become a status.
template <typename Function>
auto Guarded(const Placement& placement, const Function& function)
    -> absl::StatusOr<decltype(function())> {
  try {
    const c10::InferenceMode no_autograd;
    const Placement::Entered entered(placement);
    return function();
  } catch (...) {
    return StatusOfException(placement);
  }
}

// Keeps a value for ever, since to free memory of a lost device would end the process.
template <typename T>
void Leak(T value) {
  static Mutex mutex;
  static auto* kept = new std::deque<T>;
  MutexLock lock(mutex);
  kept->push_back(std::move(value));
}

}  // namespace linserve
