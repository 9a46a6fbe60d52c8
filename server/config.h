#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "access/tls.h"
#include "batching/inflight.h"
#include "core/options.h"
#include "engine/serving_options.h"

namespace linserve {

// Of every command that computes.
inline constexpr const char* kDeviceHelp =
    "Where models compute: cpu; cuda:N, or several like cuda:0,cuda:1; cuda: all of them; auto: "
    "those, or the CPU without any";

// Everything that `linserve serve` can be told. Filled, in rising order of precedence, from these
// defaults, the file that LINSERVE_DEFAULTS names, the configuration file, LINSERVE_* variables and
// flags.
struct Config {
  std::string model_repository = "models";
  bool follow_links = false;
  std::string grpc_address = "127.0.0.1:8500";
  std::string grpc_unix_socket;
  std::string http_address = "127.0.0.1:8080";
  std::string metrics_address;
  TlsFiles tls;
  std::string tokens_file;
  int64_t max_concurrent_requests = 65536;
  int64_t max_concurrent_requests_per_caller = 0;
  int64_t max_inflight_bytes = 0;
  int64_t max_inflight_bytes_per_caller = 0;
  int64_t max_streams_per_connection = 1024;
  int64_t processors = 0;
  std::string device = "auto";
  int64_t max_device_bytes = 0;
  int64_t max_message_bytes = 128 << 20;
  int64_t max_sequences_per_request = 16384;
  int64_t max_text_bytes = 1 << 20;
  int64_t max_requests_per_stream = 256;
  int64_t chunk_bytes = 1 << 20;
  double max_connection_age_seconds = 0;
  double max_upload_pause_seconds = 60;
  double drain_delay_seconds = 0;
  double drain_timeout_seconds = 30;
  std::string version_policy = "all";
  double repository_poll_seconds = 0;
  bool allow_model_control = false;
  bool exit_on_error = true;
  int64_t max_model_bytes = 0;
  std::string log_format = "human";
  std::string log_level = "info";
  std::string trace{};
  int64_t trace_max_bytes = 256 << 20;
  ServingOptions serving;

  void Bind(OptionTable& table);

  InflightLimits Inflight() const;

 private:
  void BindSecurity(OptionTable& table);
  void BindInflight(OptionTable& table);
};

// Applies the configuration file that the variable LINSERVE_DEFAULTS names, if there is one (an
// image brings it), then the one at `path` (JSON with comments; every key an option of the table),
// then LINSERVE_<OPTION> variables, then `flags` (by option name). An empty path: no file.
absl::Status ReadConfig(const std::string& path, const std::map<std::string, std::string>& flags,
                        OptionTable& table);

// Of each LINSERVE_* variable that is nearly, and not quite, one of an option, what it is and what
// it may have been meant to be. Others are none of ours: Kubernetes sets such in every pod.
std::vector<std::string> MisspeltVariables(const OptionTable& table);

// "HOST:PORT" in its parts; INVALID_ARGUMENT names the option.
absl::Status SplitAddress(const std::string& option, const std::string& address, std::string& host,
                          int& port);

}  // namespace linserve
