#pragma once

#include "engine/repository.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// A model as the Open Inference Protocol describes it: tensors of a whole batch, with the batch
// axis where the Python package has it, and -1 for lengths that vary. Inputs are those that every
// request must have; the output is the one that a request gets which names none: its rows, or one
// vector a sequence where the model is served pooled. `versions` is left to the caller.
void FillMetadata(const ServedModel& model, inference::ModelMetadataResponse& message);

// Triton's configuration. max_batch_size is 0, and the batch axis one of `dims`, unless it is the
// first axis of every tensor.
void FillConfig(const ServedModel& model, inference::ModelConfig& message);

}  // namespace linserve
