#pragma once

#include "absl/status/status.h"
#include "config.h"

namespace linserve {

// Serves until SIGTERM or SIGINT, then drains: readiness turns false, what was accepted is
// answered within drain_timeout_seconds, and the function returns OK. A second signal ends the
// process at once. An error says why the server could not start.
absl::Status RunServer(const Config& config);

}  // namespace linserve
