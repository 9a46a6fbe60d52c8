#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/sequence/signature.h"

namespace linserve {

// This header lays the results of single sequences out as the Python package has those of a batch.

// Returns the bytes of what JoinBatch() returns; nullopt if they are more than an int64 holds.
std::optional<int64_t> JoinedBytes(const Signature& signature,
                                   const std::vector<TensorMap>& results,
                                   const std::map<char, int64_t>& padded);

// Stacks results as the package has them, with zeros past each sequence's own lengths, and up to
// those in `padded` along the first axis.
TensorMap JoinBatch(const Signature& signature, const std::vector<TensorMap>& results,
                    const std::map<char, int64_t>& padded);

}  // namespace linserve
