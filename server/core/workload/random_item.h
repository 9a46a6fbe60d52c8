#pragma once

#include <random>
#include <string>

#include "absl/status/status.h"
#include "core/sequence/signature.h"
#include "core/workload/lengths.h"

namespace linserve {

// Draws a random sequence that a model of the signature takes: tokens uniform in the vocabulary,
// floats normal, masks all true, and a length for each lettered axis. Optional inputs are left out.
// A model that takes one length only gets that one, whatever is drawn.
Item RandomItem(const Signature& signature, const LengthDistribution& lengths,
                std::mt19937_64& random);

// Returns how long a sequence may be on every lettered axis; 0 if there is no limit.
int64_t LongestLength(const Signature& signature);

// Returns INVALID_ARGUMENT if a length could be more than the model takes, which the message calls
// `name`.
absl::Status CheckLengths(const Signature& signature, const std::string& name,
                          const LengthDistribution& lengths);

}  // namespace linserve
