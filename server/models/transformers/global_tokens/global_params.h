#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/config/params.h"
#include "models/transformers/global_tokens/global_tokens.h"

namespace linserve::transformers {

// Reads Longformer's windows: how many rows each of `layers` layers shows besides a row's own.
std::vector<int64_t> WindowsOfLayers(Params& params, size_t layers);

// Reads BigBird's blocks; the rule is undefined where all sequences of up to `longest` rows are
// whole. At inference the package draws no random blocks: each of them is the first one.
GlobalRule GlobalBlocks(Params& params, int64_t longest);

}  // namespace linserve::transformers
