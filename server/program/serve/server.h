#pragma once

#include "absl/status/status.h"
#include "program/serve/config.h"

namespace linserve {

// Serves until SIGTERM or SIGINT, then drains: readiness turns false, what was accepted is
// answered within drain_timeout_seconds, and the function returns OK. The process is ended if that
// takes five seconds more, or by a second signal. An error says why the server could not start.
absl::Status RunServer(Config config);

}  // namespace linserve
