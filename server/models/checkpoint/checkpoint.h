#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "models/config/model_config.h"
#include "models/network/parameters.h"

namespace linserve {

// Says how the tensors of a file differ from what a network declares. It is complete: every one is
// listed.
struct CheckpointDifference {
  std::vector<std::string> missing;     // "name [shape]"
  std::vector<std::string> unexpected;  // "name [shape]", with the prefix
  std::vector<std::string> misshapen;   // "name is [shape], expected [shape]"
  // The prefixes below which the file holds the model, if they are several.
  std::vector<std::string> choices;
  std::string prefix;  // that the names were compared without

  bool empty() const { return faults() == 0 && choices.empty(); }
  size_t faults() const { return missing.size() + unexpected.size() + misshapen.size(); }
  std::string ToString() const;
};

// Holds the tensors of a checkpoint by the names that the network declares. Aliases and shared
// tensors are resolved. The prefix of whatever held the model ("module.", "model.", "net.") is
// removed: the one that `names` say, or else the only one below which all tensors are the model's.
struct AlignedCheckpoint {
  TensorMap tensors;
  std::vector<std::string> left_out;  // names of tensors in the file that are not the model's
  // Those of them that stand among the model's own, where a head of another task has none.
  std::vector<std::string> strangers;
  CheckpointDifference difference;

  const std::string& prefix() const { return difference.prefix; }
  // Says that the weights may be those of another configuration; "" if nothing speaks for it.
  std::string Warning() const;
};

AlignedCheckpoint AlignCheckpoint(const ParameterList& parameters, SafetensorsFile file,
                                  const CheckpointNames& names);

// Lists the tensors that hold what is no finite number once they are of the type `dtype`, each with
// its first place; "" if there is none.
std::string NonfiniteWeights(const ParameterList& parameters, const AlignedCheckpoint& checkpoint,
                             DType dtype);

// Says what types tensors are loaded as, and in which one the model multiplies.
struct TensorTypes {
  at::ScalarType usual = at::kFloat;
  at::ScalarType rounded = at::kFloat;  // of those that are Kept::kRounded
  DType products = DType::kF32;
};

// Puts each tensor where the network wants it, in its type and on the device, and prepares the
// network. F32 tensors for F32 on the CPU are not copied; of others the checkpoint's form goes one
// by one, and modules are prepared one by one, so that there are never two forms of all. Throws
// ConfigError with the complete difference.
void LoadParameters(const ParameterList& parameters, AlignedCheckpoint checkpoint,
                    const TensorTypes& types, at::Device device);

// Fills the parameters with seeded random values, by each one's Init. The same seed gives the same
// weights.
void InitParameters(const ParameterList& parameters, uint64_t seed);

}  // namespace linserve
