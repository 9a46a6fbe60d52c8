#pragma once

#include <functional>

#include "absl/status/status.h"
#include "access/caller.h"
#include "inference/grpc_service.pb.h"
#include "serving/service_context.h"

namespace linserve {

// These functions answer what the Open Inference Protocol asks beside inference, for gRPC and REST
// alike. Each fills its answer with what the caller may know; otherwise it returns an error, in
// Triton's words where it has them.

// Anybody may ask this: probes have no token.
absl::Status Query(const ServiceContext& context, const inference::ServerReadyRequest& request,
                   inference::ServerReadyResponse& response);

absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelReadyRequest& request,
                   inference::ModelReadyResponse& response);
absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ServerMetadataRequest& request,
                   inference::ServerMetadataResponse& response);
absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelMetadataRequest& request,
                   inference::ModelMetadataResponse& response);
absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelConfigRequest& request,
                   inference::ModelConfigResponse& response);
absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelStatisticsRequest& request,
                   inference::ModelStatisticsResponse& response);
absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::RepositoryIndexRequest& request,
                   inference::RepositoryIndexResponse& response);

// Called from any thread, once, because loading and unloading take long.
using Done = std::function<void(const absl::Status&)>;
void Begin(const ServiceContext& context, const Caller& caller,
           const inference::RepositoryModelLoadRequest& request, const Done& done);
void Begin(const ServiceContext& context, const Caller& caller,
           const inference::RepositoryModelUnloadRequest& request, const Done& done);

}  // namespace linserve
