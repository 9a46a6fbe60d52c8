#include "models/init_model.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/files/safetensors.h"
#include "models/built_network.h"
#include "models/caught.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/checkpoint_files.h"
#include "models/config/config_error.h"
#include "models/placement/tensor_bridge.h"
#include "models/registry.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

absl::Status WriteRandomModel(const std::string& architecture, const std::string& params,
                              uint64_t seed, const std::string& directory,
                              const std::string& wrapper) {
  json arguments = json::parse(params, nullptr, /*allow_exceptions=*/false, true);
  if (!arguments.is_object()) {
    throw ConfigError("--params is not a JSON object: " + params +
                      "; write for example '{\"dim\": 64, \"seq_len\": 512, \"depth\": 2}'");
  }
  const json wrapped = json::parse(wrapper, nullptr, /*allow_exceptions=*/false, true);
  if (!wrapped.is_null() && !wrapped.is_object()) {
    throw ConfigError("--wrapper is not a JSON object: " + wrapper);
  }
  const json defaults = ArgumentsOfNewModels(architecture);
  arguments.insert(defaults.begin(), defaults.end());
  BuiltNetwork built =
      BuiltNetwork::From({.architecture = architecture, .params = arguments, .wrapper = wrapped});
  if (fs::exists(directory + "/config.json") || fs::exists(WeightsPath(directory))) {
    return absl::AlreadyExistsError(directory + " holds a model already; choose another directory");
  }
  fs::create_directories(directory);
  InitParameters(built.parameters, seed);
  TensorMap tensors;
  for (const Parameter& parameter : built.parameters) {
    tensors[parameter.name()] = FromAten(*parameter.slot);
  }
  absl::Status written = WriteSafetensors(WeightsPath(directory), tensors, {{"format", "pt"}});
  if (!written.ok()) return written;
  std::ofstream config(directory + "/config.json");
  json document = {{"architecture", architecture}, {"params", arguments}};
  if (!wrapped.is_null()) document["wrapper"] = wrapped;
  config << document.dump(2) << "\n";
  config.close();
  if (!config) return absl::UnknownError("cannot write " + directory + "/config.json");
  return absl::OkStatus();
}

}  // namespace

absl::Status InitModel(const std::string& architecture, const std::string& params, uint64_t seed,
                       const std::string& directory, const std::string& wrapper) {
  return Caught("init",
                [&] { return WriteRandomModel(architecture, params, seed, directory, wrapper); });
}

std::vector<std::string> Architectures() { return KnownArchitectures(); }

}  // namespace linserve
