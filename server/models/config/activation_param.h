#pragma once

#include <string>
#include <vector>

#include "attention/rows/activation.h"
#include "models/config/params.h"

namespace linserve {

// Reads an activation by its name in the package `transformers`, or one that random features have
// besides.
Activation ActivationParam(Params& params, const char* key, const char* fallback = "gelu");

// Returns these names.
std::vector<std::string> ActivationNames();

}  // namespace linserve
