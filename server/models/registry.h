#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/network.h"

namespace linserve {

// The network of an architecture ("linformer.LinformerLM") with these constructor arguments.
// Throws ConfigError for an unknown architecture (listing the known ones) or impossible arguments.
std::unique_ptr<Network> MakeNetwork(const std::string& architecture, const nlohmann::json& params);

std::vector<std::string> KnownArchitectures();

}  // namespace linserve
