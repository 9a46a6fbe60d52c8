#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/files/safetensors.h"
#include "models/config/model_config.h"

namespace linserve {

// Reads what the files of a model directory say of its network. Besides ReadModelConfig() it looks
// which tensors there are, for a Hugging Face folder does not say whether the model has its pooling
// layer, nor a JinaBERT's whether its queries and keys have norms.
absl::StatusOr<ModelConfig> ReadModelDirectory(const std::string& directory);

// Reads the tensors of the network as ReadCheckpoint() does, and those of the modules behind it,
// whose names begin with their folders'.
absl::StatusOr<SafetensorsFile> ReadModelTensors(const std::string& directory,
                                                 const ModelConfig& config);

}  // namespace linserve
