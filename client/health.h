#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/calls.h"

namespace linserve {

// grpc.health.v1.Health.Check.
grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         std::chrono::system_clock::time_point deadline, const std::string& service,
                         HealthState* state);

}  // namespace linserve
