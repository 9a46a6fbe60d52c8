#include "config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/memory.h"

namespace linserve {
namespace {

constexpr const char* kPrefix = "LINSERVE_";
constexpr const char* kDefaults = "LINSERVE_DEFAULTS";

std::string VariableName(const std::string& option) {
  std::string name = kPrefix + option;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

absl::Status ReadFile(const std::string& path, OptionTable& table) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError("cannot read the configuration file " + path);
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return table.SetAll(nlohmann::json::parse(text.str(), nullptr, /*allow_exceptions=*/true,
                                              /*ignore_comments=*/true),
                        path);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(path + ": " + error.what());
  }
}

}  // namespace

void Config::Bind(OptionTable& table) {
  table.Text("model_repository", model_repository,
             "Directory of model directories, NAME/VERSION/... or NAME/...");
  table.Flag("follow_links", follow_links,
             "Serve models whose files lie elsewhere, too, where links in the repository lead to");
  table.Text("grpc_address", grpc_address, "HOST:PORT of the gRPC services; port 0: any free one");
  table.Text("grpc_unix_socket", grpc_unix_socket,
             "Path of a Unix socket for callers on this machine, beside the address; empty: none");
  table.Text("http_address", http_address,
             "HOST:PORT of REST, /livez, /readyz, /metrics and the status page");
  table.Text("metrics_address", metrics_address,
             "HOST:PORT of /metrics and the status page, apart from the rest of HTTP, with /livez "
             "and /readyz once more; empty: on http_address");
  BindSecurity(table);
  BindInflight(table);
  table.Integer("processors", processors, 0, 4096,
                "Processors to plan replicas and threads for; 0: those that it may use, by its "
                "affinity and its control group");
  table.Text("device", device, kDeviceHelp);
  table.Integer("max_device_bytes", max_device_bytes, 0, int64_t{1} << 50,
                "Of each GPU's memory that models may take, weights and batches; 0: all that is "
                "free");
  table.Integer("max_message_bytes", max_message_bytes, 1024, (int64_t{1} << 31) - 1,
                "The largest gRPC message, either way");
  table.Integer("max_sequences_per_request", max_sequences_per_request, 1, 1 << 20,
                "More in one request are refused with INVALID_ARGUMENT");
  table.Integer("max_text_bytes", max_text_bytes, 1, 64 << 20,
                "The longest text, before it becomes tokens");
  table.Number("max_upload_pause_seconds", max_upload_pause_seconds, 0.1, 86400,
               "EmbedStream: seconds between two parts of a sequence, after which it is given up");
  table.Integer("max_requests_per_stream", max_requests_per_stream, 1, 1 << 20,
                "Requests in flight on one EmbedStream; past it, reading pauses");
  table.Integer("chunk_bytes", chunk_bytes, 1024, 64 << 20,
                "Rows of a long result are sent in messages of about this size");
  table.Number("max_connection_age_seconds", max_connection_age_seconds, 0, 86400,
               "Callers are then told to connect anew, so that they spread over the servers behind "
               "one name; open calls go on; 0: never");
  table.Number("drain_delay_seconds", drain_delay_seconds, 0, 600,
               "How long to go on serving after SIGTERM while readiness says no, so that proxies "
               "and load balancers have seen it before a call is refused");
  table.Number("drain_timeout_seconds", drain_timeout_seconds, 0, 3600,
               "How long accepted requests may take after that");
  table.Text("version_policy", version_policy,
             "Which versions are served: all, latest, latest(N) or 1,3; for single models with "
             "their names: \"latest; ranker=all; embed=1,3\"");
  table.Number("repository_poll_seconds", repository_poll_seconds, 0, 86400,
               "How often to look for new, changed and removed models; 0: on SIGHUP only");
  table.Flag("exit_on_error", exit_on_error,
             "End at the start if a model cannot be served; false: serve the others, if there are "
             "any");
  table.Flag("allow_model_control", allow_model_control,
             "Let callers load and unload models (RepositoryModelLoad, RepositoryModelUnload)");
  table.Integer("max_model_bytes", max_model_bytes, 0, int64_t{1} << 50,
                "Of the weights of all models and replicas together, while one is replaced also "
                "of its successor; 0: no bound");
  table.Choice("log_format", log_format, {"human", "json"}, "One line an event, either way");
  table.Choice("log_level", log_level, {"debug", "info", "warning", "error"},
               "debug logs every request");
  table.Text("trace", trace,
             "File for a trace in Chrome's format (Perfetto shows it): every request, sequence and "
             "batch; empty: none");
  table.Integer("trace_max_bytes", trace_max_bytes, 0, int64_t{1} << 50,
                "What it may grow to; then the trace ends, and serving goes on");
  serving.Bind(table);
}

void Config::BindSecurity(OptionTable& table) {
  table.Text("tls_certificate", tls.certificate,
             "PEM file of the server's certificate and those that it is signed by: gRPC and HTTP "
             "then speak TLS only; read again when it changes");
  table.Text("tls_private_key", tls.private_key, "PEM file of its private key");
  table.Text("tls_client_ca", tls.client_ca,
             "PEM file of the authority that callers' certificates must be signed by (mutual TLS); "
             "over HTTP, health needs none; empty: callers need none");
  table.Text("tokens_file", tokens_file,
             "JSON file of the tokens with which callers may call, their rights and rates, read "
             "again when it changes; see README.md; empty: anybody may");
}

void Config::BindInflight(OptionTable& table) {
  constexpr int64_t kMany = int64_t{1} << 40;
  table.Integer("max_concurrent_requests", max_concurrent_requests, 1, kMany,
                "Requests from arrival to the last answer, over all models; more are refused with "
                "RESOURCE_EXHAUSTED");
  table.Integer("max_concurrent_requests_per_caller", max_concurrent_requests_per_caller, 0, kMany,
                "Of one token, or one address where there are no tokens; 0: half of all");
  table.Integer("max_inflight_bytes", max_inflight_bytes, 0, int64_t{1} << 50,
                "Bytes of those requests and of their results; 0: a quarter of the memory that "
                "the process may use");
  table.Integer("max_inflight_bytes_per_caller", max_inflight_bytes_per_caller, 0, int64_t{1} << 50,
                "Of one caller; 0: half of all");
  table.Integer("max_streams_per_connection", max_streams_per_connection, 1, 1 << 20,
                "gRPC calls at once on one connection; more wait at the caller");
}

InflightLimits Config::Inflight() const {
  InflightLimits limits;
  limits.max_requests = max_concurrent_requests;
  limits.max_bytes = max_inflight_bytes > 0 ? max_inflight_bytes : MemoryBytes() / 4;
  limits.max_requests_per_caller = max_concurrent_requests_per_caller > 0
                                       ? max_concurrent_requests_per_caller
                                       : std::max<int64_t>(1, limits.max_requests / 2);
  limits.max_bytes_per_caller =
      max_inflight_bytes_per_caller > 0 ? max_inflight_bytes_per_caller : limits.max_bytes / 2;
  return limits;
}

absl::Status ReadConfig(const std::string& path, const std::map<std::string, std::string>& flags,
                        OptionTable& table) {
  const char* defaults = std::getenv(kDefaults);  // NOLINT(concurrency-mt-unsafe): at start
  for (const std::string& file : {std::string(defaults == nullptr ? "" : defaults), path}) {
    if (file.empty()) continue;
    if (absl::Status status = ReadFile(file, table); !status.ok()) return status;
  }
  for (const OptionTable::Description& option : table.Describe()) {
    const std::string variable = VariableName(option.name);
    const char* value = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): at start
    if (value == nullptr) continue;
    absl::Status status = table.SetText(option.name, value, "variable " + variable);
    if (!status.ok()) return status;
  }
  for (const auto& [name, value] : flags) {
    if (absl::Status status = table.SetText(name, value, "command line"); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> MisspeltVariables(const OptionTable& table) {
  constexpr size_t kMostChanges = 2;
  std::vector<std::string> warnings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable(*entry, std::strcspn(*entry, "="));
    if (!variable.starts_with(kPrefix)) continue;
    std::string option = variable.substr(std::strlen(kPrefix));
    std::transform(option.begin(), option.end(), option.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string nearest = table.NearestTo(option, kMostChanges);
    if (nearest.empty() || nearest == option) continue;
    warnings.push_back("the variable " + variable + " is of no option; did you mean " +
                       VariableName(nearest) + "?");
  }
  return warnings;
}

absl::Status SplitAddress(const std::string& option, const std::string& address, std::string& host,
                          int& port) {
  const size_t colon = address.rfind(':');
  if (colon != std::string::npos) {
    const char* begin = address.data() + colon + 1;
    const char* end = address.data() + address.size();
    const auto parsed = std::from_chars(begin, end, port);
    if (parsed.ec == std::errc() && parsed.ptr == end && port >= 0 && port <= 65535) {
      host = address.substr(0, colon);
      if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError("\"" + option + "\" is \"" + address +
                                    "\", expected HOST:PORT, for example 127.0.0.1:8500");
}

}  // namespace linserve
