#pragma once

#include <cstdint>

#include "attention/positions/rotary_frequencies.h"
#include "models/config/params.h"

namespace linserve {

inline constexpr double kLargestTheta = 1e12;

// Says what a configuration of the package `transformers` has besides its rotary positions.
struct RotaryUsual {
  double theta = 10000;
  int64_t longest = 1;   // max_position_embeddings
  bool of_phi3 = false;  // default or longrope, and those of a share of each head
};

// Reads rope_parameters, or rope_scaling and rope_theta as older configurations have them. Throws
// ConfigError.
RotaryFrequencies RotaryParams(Params& params, const RotaryUsual& usual);

// Reads the positions that `rope` describes, or is silent of where it is nullptr. `params` are
// those of the whole model.
RotaryFrequencies RotaryParams(Params& params, Params* rope, const RotaryUsual& usual);

}  // namespace linserve
