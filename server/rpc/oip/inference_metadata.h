#pragma once

#include "inference/grpc_service.pb.h"
#include "repository/repository.h"

namespace linserve {

// Describes a model as the Open Inference Protocol does: tensors of a whole batch, with the batch
// axis where the Python package has it, and -1 for lengths that vary. The inputs are those that
// every request must have. The output is the one that a request gets which names none: its rows, or
// one vector for each sequence where the model is served pooled. `versions` is left to the caller.
void FillMetadata(const ServedModel& model, inference::ModelMetadataResponse& message);

// Fills in Triton's configuration. max_batch_size is 0, and the batch axis is one of `dims`, unless
// it is the first axis of every tensor.
void FillConfig(const ServedModel& model, inference::ModelConfig& message);

}  // namespace linserve
