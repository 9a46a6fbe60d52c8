#pragma once

#include <random>
#include <string>

#include "absl/status/status.h"
#include "core/lengths.h"
#include "core/signature.h"

namespace linserve {

// A random sequence that a model of the signature takes: tokens uniform in the vocabulary, floats
// normal, masks all true, a length drawn for each lettered axis; optional inputs are left out.
// Models that take one length only get it, whatever is drawn.
Item RandomItem(const Signature& signature, const LengthDistribution& lengths,
                std::mt19937_64& random);

// INVALID_ARGUMENT if a length could be more than the model, `name` in the message, takes.
absl::Status CheckLengths(const Signature& signature, const std::string& name,
                          const LengthDistribution& lengths);

}  // namespace linserve
