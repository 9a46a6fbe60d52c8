#pragma once

#include "absl/status/status.h"
#include "program/serve/settings.h"

namespace linserve {

// Serves until SIGTERM or SIGINT, then drains: readiness turns false, what was accepted is
// answered within drain_timeout_seconds, and the function returns OK. The process is ended if that
// takes five seconds more, or by a second signal. SIGHUP has the settings read again: what may
// change of them while the server runs does, and changed models are loaded. An error says why the
// server could not start.
absl::Status RunServer(Settings& settings);

}  // namespace linserve
