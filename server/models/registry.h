#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve {

// Makes the network that `config` describes. Throws ConfigError for an unknown architecture
// (listing the known ones) or impossible arguments.
std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config);

// Returns the arguments that a new model gets besides those that it is given, where the package's
// own defaults are only right for what was trained with them. Throws as MakeNetwork().
nlohmann::json ArgumentsOfNewModels(const std::string& architecture);

std::vector<std::string> KnownArchitectures();

}  // namespace linserve
