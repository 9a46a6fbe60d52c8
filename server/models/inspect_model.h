#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "engine/model.h"

namespace linserve {

// This header is for looking at a model directory without loading its weights. It is free of
// LibTorch, as model_loader.h is.

// Holds what `linserve inspect` shows.
struct ModelReport {
  ModelInfo info;
  struct Row {
    std::string name;
    Shape shape;
  };
  std::vector<Row> parameters;
  int64_t length = 0;          // rows that the FLOPs are counted for: the longest; 512 if unlimited
  double flops_per_token = 0;  // additions and multiplications, all outputs
  std::vector<std::pair<std::string, std::string>> facts;  // what is particular to the architecture
  std::vector<std::string> warnings;
  std::string prefix;                 // before the names in the file
  std::vector<std::string> left_out;  // tensors of the file that are not the model's
  std::string difference;             // between file and configuration; empty if they fit
  std::string nonfinite;              // the weights that are NaN or infinite; empty if none is
};

// Returns the report on DIRECTORY/config.json and the header of model.safetensors. INVALID_ARGUMENT
// or NOT_FOUND says what is wrong with the directory; tensors that do not fit are a `difference`.
// Whether weights are finite is only said if they are to be looked at, which reads all of them.
absl::StatusOr<ModelReport> InspectModel(const std::string& directory, bool look_at_weights = true);

}  // namespace linserve
