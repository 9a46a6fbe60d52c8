#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/library/embedding_client.h"

namespace linserve {

// Makes a connection of its own, with the options' credentials.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options);

}  // namespace linserve
