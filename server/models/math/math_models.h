#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::math {

// These are the five attention methods as models without weights. They take query [n, d], key [m,
// d], value [m, v] and mask [m] (optional, true = visible), and give y [n, v]. All have the
// parameter `causal` (false), with which m = n.

// Computes softmax(q·kᵀ/sqrt(d))·v.
std::unique_ptr<Network> MakeSoftmax(Params& params);

// Computes softmax over features(q)·softmax over positions(k)ᵀ·v.
std::unique_ptr<Network> MakeEfficient(Params& params);

// Takes elu + 1 as the kernel; `normalize` (true) divides by the sum of the weights.
std::unique_ptr<Network> MakeKernel(Params& params);

// Computes with weights 1 + q·k of queries and keys of length one.
std::unique_ptr<Network> MakeTaylor(Params& params);

// Computes softmax(q·(e·k)ᵀ/sqrt(d))·(f·v) with further inputs e and f [r, m].
std::unique_ptr<Network> MakeLinformer(Params& params);

}  // namespace linserve::math
