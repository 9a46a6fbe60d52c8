#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/library/embedding_client.h"

namespace linserve {

// Makes a connection of its own, with the options' credentials.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options);

// Calls grpc.health.v1.Health.Check.
grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         std::chrono::system_clock::time_point deadline, const std::string& service,
                         HealthState* state);

}  // namespace linserve
