#pragma once

#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Reads the configuration of a DeBERTa, of the first version or the second and third. Throws
// ConfigError.
Options Deberta(Family family, Params& params);

// Reads the activation of its classifier's pooling layer.
Activation DebertaPooling(const Options& options, Params& params);

}  // namespace linserve::transformers
