#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "models/config/model_config.h"
#include "models/network/parameters.h"

namespace linserve {

// Returns whether `name` is what `glob` says: '*' is any text, '?' any character.
bool MatchesGlob(std::string_view name, std::string_view glob);

// Holds a checkpoint by names without what torch.compile, activation checkpointing, FSDP and
// Lightning Fabric write into them ("_orig_mod." and its kin), wherever it stands.
class NamedTensors {
 public:
  // `metadata` is that of the file: safetensors' save_model() keeps one name of a shared tensor and
  // says there which others it left out. What `names` ignore is not taken in.
  NamedTensors(TensorMap file, const std::map<std::string, std::string>& metadata,
               const CheckpointNames& names);

  // Returns those whose names begin with `prefix`, without it, and those that stand apart.
  TensorMap Below(const std::string& prefix) const;
  // Returns the names that do not begin with it.
  std::vector<std::string> Beside(const std::string& prefix) const;
  // Returns the tensor that the file has under another name than this one; null if it has none.
  const Tensor* LeftOut(const std::string& name) const;

  // Returns prefixes, the shortest first, below which there is one of the network's parameters.
  std::vector<std::string> Prefixes(const ParameterList& parameters) const;

 private:
  TensorMap tensors_;
  TensorMap apart_;
  TensorMap left_out_;  // by the names that the file lacks
};

}  // namespace linserve
