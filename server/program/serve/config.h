#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/options/listen_address.h"
#include "core/options/options.h"
#include "engine/serving_options.h"
#include "http/http_server.h"
#include "repository/model_manager.h"
#include "rpc/grpc_options.h"
#include "telemetry/log.h"
#include "telemetry/trace/trace.h"

namespace linserve {

// Says where and how HTTP is served.
struct HttpConfig {
  ListenAddress all = {HttpOptions().host, HttpOptions().port};
  std::optional<ListenAddress> pages{};  // of /metrics and the status page; none: as `all`
  std::chrono::nanoseconds keep_alive = HttpLimits().idle;
  std::vector<std::string> cors_origins{};

  void Bind(OptionTable& table);
};

// Holds everything that `linserve serve` can be told. It is filled, in rising order of precedence,
// from these defaults, the file that LINSERVE_DEFAULTS names, the configuration file, LINSERVE_*
// variables and flags.
struct Config {
  ManagerOptions repository;
  bool exit_on_error = true;
  bool allow_model_control = false;
  GrpcOptions grpc;
  HttpConfig http;
  DeviceOptions devices;
  int64_t max_session_bytes_per_caller = 0;  // 0: half of all
  std::chrono::nanoseconds drain_delay{0};
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(30);
  LogOptions log;
  TraceOptions trace;
  ServingOptions serving;

  void Bind(OptionTable& table);
};

// Writes the table's options as a configuration file, one a line; with comments, each under its
// help.
std::string ToFile(const OptionTable& table, bool comments);

}  // namespace linserve
