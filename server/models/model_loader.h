#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model.h"

namespace linserve {

// This header is the door to its layer. It is free of LibTorch, so that programs and tests need not
// include that.

struct ModelLoadOptions {
  std::string device = "cpu";  // one of DevicePlan::devices
  // Is "f32", "bf16", "int8" (on the CPU) or "f16" (on GPUs). "auto" is, on the CPU, the faster of
  // f32 and bf16 in the model's own products, and on GPUs bf16 where there are units for it, else
  // f16; with "auto:int8" the CPU may choose int8, too. "default" is "f32" on the CPU and "auto" on
  // GPUs.
  std::string dtype = "f32";
  int64_t threads = 0;  // inside one product; 0: one a processor
  bool allow_nonfinite = false;
  // Is asked, if there, before the weights are read, which may take long; a refusal is the load's.
  std::function<absl::Status(const Signature&)> accept{};
};

// Loads DIRECTORY/config.json and model.safetensors. Call it on the thread that will run the model:
// its products use that thread's team of threads. INVALID_ARGUMENT or NOT_FOUND says what is wrong
// with the directory and how to mend it.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& directory,
                                                 const ModelLoadOptions& options);

// Holds what the weights of one replica take, and the type that is computed in.
struct ModelWeights {
  int64_t bytes = 0;
  DType dtype = DType::kF32;
};

// Returns what the weights would take, by DIRECTORY/config.json and the size of model.safetensors,
// of which nothing is read. Its errors are those of LoadModel().
absl::StatusOr<ModelWeights> WeightsOf(const std::string& directory,
                                       const ModelLoadOptions& options);

// Loads the replicas of a model, which take turns on the devices. Those on the CPU share one copy
// of the weights, which is loaded once.
ModelFactory ReplicasOf(const std::string& directory, ModelLoadOptions options,
                        std::vector<std::string> devices);

// Returns the types that models can be computed in on this CPU: "f32", and those that it has
// kernels for.
std::vector<std::string> TypesOfCpu();

// Returns the version of LibTorch that the program was built with, such as "2.11.0".
std::string TorchVersion();

}  // namespace linserve
