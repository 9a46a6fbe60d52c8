#pragma once

#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Read the configurations of the families whose queries and keys are turned by their positions.
// They throw ConfigError.
Options ModernBert(Params& params);
Options NomicBert(Params& params);
Options Gte(Params& params);
Options JinaV3(Params& params);

// Reads the width, the heads and the feed-forward's width by these keys.
void SetSizes(Options& options, Params& params, const char* dim, const char* heads,
              const char* inner, int64_t usual_inner = 3072, int64_t usual_dim = 768,
              int64_t usual_heads = 12);

// Refuses heads that rotary positions cannot turn.
void CheckHalves(const Options& options, Params& params, const char* dim = "hidden_size");

}  // namespace linserve::transformers
