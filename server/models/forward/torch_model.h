#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/model.h"
#include "models/network/network.h"
#include "models/placement/placement.h"

namespace linserve {

// Makes of any network what the engine sees: it moves batches to its device and rows back, pools,
// normalises, converts and crops them, and turns what LibTorch throws into a status. Several may
// share a network.
std::unique_ptr<Model> MakeTorchModel(std::shared_ptr<const Network> network, ModelInfo info,
                                      const Placement& placement);

}  // namespace linserve
