#pragma once

#include <memory>
#include <string>

#include "engine/model.h"
#include "models/config/params.h"
#include "models/network/network.h"
#include "models/network/parameters.h"

namespace linserve {

// Holds a network as config.json describes it, with the list of its parameters, whose tensors are
// not there yet. Loading, random initialisation and inspection begin with it.
struct BuiltNetwork {
  std::unique_ptr<Network> network;
  ParameterList parameters;

  // Throws ConfigError for what MakeNetwork() refuses, and for tensors that no memory could hold.
  static BuiltNetwork From(const NetworkConfig& config);

  // Says what the engine is told of the model, counted in F32.
  ModelInfo Describe(const std::string& architecture) const;
};

}  // namespace linserve
