#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config.h"
#include "engine/repository.h"
#include "http/http_server.h"
#include "rpc/grpc_server.h"
#include "telemetry/metrics.h"

namespace linserve {

enum class Phase : uint8_t { kLoading, kReady, kDraining };

struct HttpServers {
  std::unique_ptr<HttpServer> all;
  std::unique_ptr<HttpServer> pages;  // null: they are with the rest
};

// REST, health, metrics and the status page, on one address or on two. The arguments must outlive
// what is started.
absl::StatusOr<HttpServers> StartHttp(const Config& config, const Metrics& metrics,
                                      const ModelRepository& repository, GrpcServer& grpc,
                                      const std::atomic<Phase>& phase);

// The parts of an address to listen on. Warns of plain text that others can reach.
absl::Status ReadAddress(const char* option, const std::string& address, const TlsFiles& tls,
                         std::string& host, int& port);

}  // namespace linserve
