#pragma once

#include <vector>

#include "models/llama/options.h"
#include "models/transformers/positions/rotary_params.h"

namespace linserve::llama {

// Reads what each of the layers sees, and its place in Options::rotary. The options say how many
// layers there are. Throws ConfigError.
void SetLayerKinds(Family family, Params& params, Options& options);

// Reads how Gemma 3's layers turn queries and keys: those that see all, and those with windows.
// Throws ConfigError.
std::vector<RotaryFrequencies> GemmaRotary(Params& params, const RotaryUsual& usual);

}  // namespace linserve::llama
