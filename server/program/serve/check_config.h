#pragma once

#include "absl/status/status.h"
#include "program/serve/settings.h"

namespace linserve {

// Does all that a start does short of loading weights: it looks for devices, reads the models'
// configurations, tokenizers and what their files hold, certificates and tokens, shares the memory
// out, and listens on each address for a moment. Prints every option with where its value stands
// and what a value that leaves it open became, and how each model would be served. Returns all that
// would keep a server from starting.
absl::Status CheckConfig(const Settings& settings);

}  // namespace linserve
