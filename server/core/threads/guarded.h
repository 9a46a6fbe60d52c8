#pragma once

#include <string_view>
#include <type_traits>

#include "absl/status/status.h"

namespace linserve {

// Returns what the exception that is being handled says: RESOURCE_EXHAUSTED if memory ran out, else
// INTERNAL with the exception's text. `work` names what was being done.
absl::Status StatusOfException(std::string_view work) noexcept;

// Runs a function that gives a status, a StatusOr or nothing, and turns what it throws into a
// status: an exception that leaves a thread or a callback of gRPC ends the process.
template <typename Function>
auto Guarded(std::string_view work, Function&& function) noexcept {
  using Result = std::invoke_result_t<Function>;
  using Returned = std::conditional_t<std::is_void_v<Result>, absl::Status, Result>;
  try {
    if constexpr (std::is_void_v<Result>) {
      function();
      return Returned();
    } else {
      return Returned(function());
    }
  } catch (...) {
    return Returned(StatusOfException(work));
  }
}

// Is told of failures that no caller waits for, on the thread of the failure.
using FailureReporter = void (*)(std::string_view work, const absl::Status& failure);

// Sets who is told. Until then failures are written to standard error.
void ReportFailuresTo(FailureReporter reporter);

// Tells of a failure, whatever memory is left.
void ReportFailure(std::string_view work, const absl::Status& failure) noexcept;

// Runs the body of a thread or a callback that no caller waits for, and reports what it throws.
template <typename Function>
void RunGuarded(std::string_view work, Function&& function) noexcept {
  static_assert(std::is_void_v<std::invoke_result_t<Function>>, "use Guarded() for its status");
  if (const absl::Status status = Guarded(work, function); !status.ok()) {
    ReportFailure(work, status);
  }
}

}  // namespace linserve
