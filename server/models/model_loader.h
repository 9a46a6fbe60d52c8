#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model.h"

namespace linserve {

// The door to this layer: free of LibTorch, so that programs and tests need not include it.

struct LoadOptions {
  std::string device = "cpu";  // one of DevicePlan::devices
  // "f32", "bf16", "f16" (not on the CPU) or "auto": bf16 where the device has units for it
  std::string dtype = "f32";
  int64_t threads = 0;  // inside one product; 0: one a processor
  bool allow_nonfinite = false;
  // Asked, if there, before the weights are read, which may take long; a refusal is the load's.
  std::function<absl::Status(const Signature&)> accept{};
};

// Loads DIRECTORY/config.json and model.safetensors. Call it on the thread that will run the model:
// its products use that thread's team of threads. INVALID_ARGUMENT or NOT_FOUND says what is wrong
// with the directory and how to mend it.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& directory,
                                                 const LoadOptions& options);

// Loads the replicas of a model, which take turns on the devices.
ModelFactory ReplicasOf(const std::string& directory, LoadOptions options,
                        std::vector<std::string> devices);

// Writes a model directory with seeded random weights. `params` and `wrapper` are JSON: the
// constructor's arguments, and what config.json says of a wrapper ("null": none). ALREADY_EXISTS if
// there is a model in it.
absl::Status InitModel(const std::string& architecture, const std::string& params, uint64_t seed,
                       const std::string& directory, const std::string& wrapper = "null");

// What `linserve inspect` shows.
struct ModelReport {
  ModelInfo info;
  struct Row {
    std::string name;
    Shape shape;
  };
  std::vector<Row> parameters;
  int64_t length = 0;          // that the FLOPs are counted for: the longest; 512 without a limit
  double flops_per_token = 0;  // additions and multiplications, all outputs
  std::vector<std::pair<std::string, std::string>> facts;  // what is particular to the architecture
  std::vector<std::string> warnings;
  std::string stripped_prefix;
  std::string difference;  // between file and configuration; empty if they fit
};

absl::StatusOr<ModelReport> InspectModel(const std::string& directory);

// The architectures that config.json may name.
std::vector<std::string> Architectures();

// "2.11.0"
std::string TorchVersion();

}  // namespace linserve
