#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace linserve {

// This header is for making a model before one is trained. It is free of LibTorch, as
// model_loader.h is.

// Writes a model directory with seeded random weights: the same seed gives the same files. `params`
// and `wrapper` are JSON: the constructor's arguments, and what config.json says of a wrapper
// ("null": none). INVALID_ARGUMENT says what is wrong with them; ALREADY_EXISTS that there is a
// model in the directory.
absl::Status InitModel(const std::string& architecture, const std::string& params, uint64_t seed,
                       const std::string& directory, const std::string& wrapper = "null");

// Returns the architectures that config.json may name.
std::vector<std::string> Architectures();

}  // namespace linserve
