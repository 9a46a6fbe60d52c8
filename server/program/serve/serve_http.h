#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/threads/periodic.h"
#include "http/http_server.h"
#include "program/serve/config.h"
#include "repository/repository.h"
#include "rpc/grpc_server.h"
#include "telemetry/metrics.h"
#include "telemetry/recent_metrics.h"

namespace linserve {

enum class Phase : uint8_t { kLoading, kReady, kDraining };

struct HttpServers {
  std::unique_ptr<RecentMetrics> recent;
  std::unique_ptr<Periodic> sampling;  // of `recent`
  std::unique_ptr<HttpServer> all;
  std::unique_ptr<HttpServer> pages;  // null: they are served by `all`
};

// Serves REST, health, metrics and the status page, on one address or on two. The arguments must
// outlive what is started.
absl::StatusOr<HttpServers> StartHttp(const Config& config, const Metrics& metrics,
                                      const ModelRepository& repository, GrpcServer& grpc,
                                      const std::atomic<Phase>& phase);

// Logs where an address serves plain text that others can reach.
void WarnOfPlainText(const char* option, const ListenAddress& address, const TlsFiles& tls);

}  // namespace linserve
