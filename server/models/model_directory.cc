#include "models/model_directory.h"

#include <algorithm>
#include <set>

#include "models/checkpoint_files.h"

namespace linserve {

absl::StatusOr<ModelConfig> ReadModelDirectory(const std::string& directory) {
  auto config = ReadModelConfig(directory);
  if (!config.ok() || !config->network.foreign) return config;
  const std::set<std::string> names = CheckpointTensorNames(directory);
  config->network.params["add_pooling_layer"] =
      std::any_of(names.begin(), names.end(),
                  [](const std::string& name) { return name.ends_with("pooler.dense.weight"); });
  return config;
}

}  // namespace linserve
