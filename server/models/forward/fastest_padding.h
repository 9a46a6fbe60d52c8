#pragma once

#include "core/sequence/batch.h"
#include "engine/model.h"
#include "models/network/network.h"
#include "models/placement/placement.h"

namespace linserve {

// Returns the padding that a device is fastest with: bucket where its operators take sequences of
// unequal lengths together once they are padded, and it has no kernels for packed ones. It tries
// both with two short sequences. On the CPU, which needs no such kernels, it is packed.
Padding FastestPadding(const Network& network, const ModelInfo& info, const Placement& placement);

}  // namespace linserve
