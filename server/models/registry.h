#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/network.h"
#include "models/params.h"

namespace linserve {

// The network that `config` describes. Throws ConfigError for an unknown architecture (listing the
// known ones) or impossible arguments.
std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config);

std::vector<std::string> KnownArchitectures();

}  // namespace linserve
