#pragma once

#include "absl/status/status.h"

namespace linserve {

// Returns what callers are told of a server that is shutting down: UNAVAILABLE.
inline absl::Status DrainingError() {
  return absl::UnavailableError("the server is draining; try another one");
}

}  // namespace linserve
