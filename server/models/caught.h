#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/strings/utf8.h"
#include "models/config/config_error.h"

namespace linserve {

// Returns a status that begins with `where`. What is said of a model is cut: its files, which a
// fault quotes, may hold megabytes of values and of names.
inline absl::Status FaultOf(absl::StatusCode code, const std::string& where,
                            std::string_view what) {
  constexpr size_t kLongest = 16 << 10;
  return {code, where + ": " + std::string(CutAtCharacter(what, kLongest))};
}

// Runs `function`, which gives a status or a StatusOr, and turns the exceptions that this layer and
// LibTorch throw into a status that begins with `where`.
template <typename Function>
auto Caught(const std::string& where, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const ConfigError& error) {
    return FaultOf(absl::StatusCode::kInvalidArgument, where, error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(where + ": not enough memory for the weights");
  } catch (const c10::Error& error) {
    return FaultOf(absl::StatusCode::kInternal, where, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return FaultOf(absl::StatusCode::kInternal, where, error.what());
  }
}

}  // namespace linserve
