#include "models/model_directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "attention/rows/aten.h"
#include "models/checkpoint/checkpoint_files.h"
#include "models/config/hugging_face_config.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

// Returns the folder in which the tensors lie.
std::string TensorFolder(const std::string& directory, const ModelConfig& config) {
  const std::string folder = config.network.sentence.table.value_or("");
  return folder.empty() ? directory : directory + "/" + folder;
}

// Reads how large a static model's table is, which no other file says.
absl::Status ReadTable(const std::string& folder, ModelConfig& config) {
  const auto shapes = ReadSafetensorsShapes(WeightsPath(folder));
  if (absl::IsNotFound(shapes.status())) return ReadCheckpoint(folder).status();
  if (!shapes.ok()) return shapes.status();
  ReadStaticTable(*shapes, config);
  return absl::OkStatus();
}

// Makes floats of those of a static model's tensors that may be integers.
void ConvertTable(TensorMap& tensors) {
  for (const char* name : {"embeddings", "mapping"}) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || IsFloat(found->second.dtype())) continue;
    found->second = FromAten(ToAten(found->second).to(at::kFloat));
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelDirectory(const std::string& directory) {
  auto config = ReadModelConfig(directory);
  if (!config.ok() || !config->network.foreign) return config;
  if (config->network.sentence.table) {
    absl::Status status = ReadTable(TensorFolder(directory, *config), *config);
    if (!status.ok()) return status;
    return config;
  }
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
  auto whole = ReadCheckpoint(TensorFolder(directory, config));
  if (!whole.ok()) return whole;
  if (config.static_settings) ConvertTable(whole->tensors);
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
