#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/files/safetensors.h"

namespace linserve {

// Returns the path of the file of a model directory that holds the tensors, if one file does.
std::string WeightsPath(const std::string& directory);

// Reads model.safetensors or, where there is none, the files that model.safetensors.index.json
// names. NOT_FOUND and INVALID_ARGUMENT say what lies there instead, such as a pickle, and how it
// becomes what is read.
absl::StatusOr<SafetensorsFile> ReadCheckpoint(const std::string& directory);

// Returns the names of the tensors in those files, of which nothing else is read; none where they
// cannot be read.
std::set<std::string> CheckpointTensorNames(const std::string& directory);

// Returns how many bytes those files have; 0 where they cannot be read.
int64_t CheckpointBytes(const std::string& directory);

}  // namespace linserve
