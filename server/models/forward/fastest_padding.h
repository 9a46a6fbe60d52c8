#pragma once

#include "core/sequence/batch.h"
#include "engine/model.h"
#include "models/network/network.h"
#include "models/placement/placement.h"

namespace linserve {

// Returns the padding that a device is fastest with: packed where it has kernels for sequences of
// unequal lengths, bucket where its operators take them together once they are padded. It tries
// that with two short sequences. On the CPU, which needs no such kernels, it is packed.
Padding FastestPadding(const Network& network, const ModelInfo& info, const Placement& placement);

}  // namespace linserve
