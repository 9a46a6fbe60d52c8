#pragma once

#include "inference/grpc_service.pb.h"
#include "repository/repository.h"

namespace linserve {

// Fills in what ModelStatistics says of one version of a model: all its calls, of either protocol.
void FillStatistics(const ServedModel& model, inference::ModelStatistics& message);

}  // namespace linserve
