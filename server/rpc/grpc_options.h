#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "access/access.h"
#include "core/options/listen_address.h"
#include "core/options/options.h"
#include "rpc/unix_socket.h"
#include "serving/inflight.h"
#include "serving/rpc_limits.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace linserve {

struct GrpcOptions {
  ListenAddress address = {"127.0.0.1", 8500};
  UnixSocketOptions unix_socket{};
  AccessOptions access{};
  InflightLimits inflight{};
  int64_t max_streams_per_connection = 1024;
  RpcLimits limits{};
  std::chrono::nanoseconds max_connection_age{0};  // give or take a tenth; 0: without an end
  std::string version{};                           // the server's version, as its metadata says it

  void BindAddress(OptionTable& table);
  void BindLimits(OptionTable& table);
  // Tells gRPC of the options that it knows, and of our own choices.
  void Configure(grpc::ServerBuilder& builder) const;
};

}  // namespace linserve
