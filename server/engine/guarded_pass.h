#pragma once

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"

namespace linserve {

// Calls what runs the model for so many sequences, and turns what it throws into a status.
template <typename Function>
auto GuardedPass(size_t sequences, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        sequences == 1 ? "not enough memory for this sequence"
                       : "not enough memory for " + std::to_string(sequences) + " sequences");
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("the forward pass failed: ") + error.what());
  }
}

}  // namespace linserve
