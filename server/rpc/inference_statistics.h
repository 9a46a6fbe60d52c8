#pragma once

#include "engine/repository.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// What ModelStatistics says of one version of a model: all its calls, of either protocol.
void FillStatistics(const ServedModel& model, inference::ModelStatistics& message);

}  // namespace linserve
