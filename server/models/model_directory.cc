#include "models/model_directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/checkpoint/checkpoint_files.h"

namespace linserve {

absl::StatusOr<ModelConfig> ReadModelDirectory(const std::string& directory) {
  auto config = ReadModelConfig(directory);
  if (!config.ok() || !config->network.foreign) return config;
  const std::set<std::string> names = CheckpointTensorNames(directory);
  const auto has = [&](const char* tensor) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.ends_with(tensor); });
  };
  config->network.params["add_pooling_layer"] = has("pooler.dense.weight") || has("pooler.weight");
  config->network.params["qk_norm"] = has("attention.self.layer_norm_q.weight");
  return config;
}

absl::StatusOr<SafetensorsFile> ReadModelTensors(const std::string& directory,
                                                 const ModelConfig& config) {
  auto whole = ReadCheckpoint(directory);
  if (!whole.ok()) return whole;
  for (const DenseModule& dense : config.network.sentence.dense) {
    if (dense.path.empty()) continue;
    auto module = ReadCheckpoint(directory + "/" + dense.path);
    if (!module.ok()) return module;
    for (auto& [name, tensor] : module->tensors) {
      whole->tensors.insert_or_assign(dense.path + "." + name, std::move(tensor));
    }
  }
  return whole;
}

}  // namespace linserve
