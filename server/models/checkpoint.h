#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/files/safetensors.h"
#include "models/network/parameters.h"

namespace linserve {

// Says how the tensors of a file differ from what a network declares. It is complete: every one is
// listed.
struct CheckpointDifference {
  std::vector<std::string> missing;     // "name [shape]"
  std::vector<std::string> unexpected;  // "name [shape]"
  std::vector<std::string> misshapen;   // "name is [shape], expected [shape]"

  bool empty() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
  std::string ToString() const;
};

// Holds the tensors of a checkpoint by the names that the network declares: aliases resolved, and
// one common wrapper prefix ("module.", "_orig_mod.", "model.", "net.") removed if that is what it
// takes to fit.
struct AlignedCheckpoint {
  TensorMap tensors;
  std::string stripped_prefix;
  CheckpointDifference difference;
};

AlignedCheckpoint AlignCheckpoint(const ParameterList& parameters, TensorMap file,
                                  const std::map<std::string, std::string>& aliases);

// Puts each tensor where the network wants it, as `dtype` and on the device. F32 tensors for F32 on
// the CPU are not copied; of others the checkpoint's form goes one by one, so that there are never
// two of all. Throws ConfigError with the complete difference.
void LoadParameters(const ParameterList& parameters, AlignedCheckpoint checkpoint,
                    at::ScalarType dtype, at::Device device);

// Fills the parameters with seeded random values, by each one's Init. The same seed gives the same
// weights.
void InitParameters(const ParameterList& parameters, uint64_t seed);

}  // namespace linserve
