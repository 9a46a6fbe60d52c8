#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "models/network/config_error.h"

namespace linserve {

// Runs `function`, which gives a status or a StatusOr, and turns the exceptions that this layer and
// LibTorch throw into a status that begins with `where`.
template <typename Function>
auto Caught(const std::string& where, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const ConfigError& error) {
    return absl::InvalidArgumentError(where + ": " + error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(where + ": not enough memory for the weights");
  } catch (const c10::Error& error) {
    return absl::InternalError(where + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(where + ": " + error.what());
  }
}

}  // namespace linserve
