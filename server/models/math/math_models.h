#pragma once

#include <memory>

#include "models/network/network.h"
#include "models/network/params.h"

namespace linserve::math {

// The five attention methods as models without weights: query [n, d], key [m, d], value [m, v],
// mask [m] (optional, true = visible) -> y [n, v]. Parameter of all: `causal` (false); then m = n.

// softmax(q·kᵀ/sqrt(d))·v
std::unique_ptr<Network> MakeSoftmax(Params& params);

// softmax over features(q)·softmax over positions(k)ᵀ·v
std::unique_ptr<Network> MakeEfficient(Params& params);

// elu + 1 as the kernel; `normalize` (true) divides by the sum of the weights.
std::unique_ptr<Network> MakeKernel(Params& params);

// weights 1 + q·k of queries and keys of length one
std::unique_ptr<Network> MakeTaylor(Params& params);

// softmax(q·(e·k)ᵀ/sqrt(d))·(f·v) with further inputs e and f [r, m].
std::unique_ptr<Network> MakeLinformer(Params& params);

}  // namespace linserve::math
