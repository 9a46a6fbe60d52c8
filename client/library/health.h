#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/library/calls.h"

namespace linserve {

// Calls grpc.health.v1.Health.Check.
grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         std::chrono::system_clock::time_point deadline, const std::string& service,
                         HealthState* state);

}  // namespace linserve
