#include "server.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/periodic.h"
#include "core/pooling.h"
#include "core/processors.h"
#include "engine/model_manager.h"
#include "engine/repository.h"
#include "memory_trim.h"
#include "model_tokenizer.h"
#include "models/devices.h"
#include "models/model_loader.h"
#include "option_flags.h"
#include "rpc/grpc_server.h"
#include "rpc/service_context.h"
#include "serve_http.h"
#include "signals.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "telemetry/trace.h"
#include "version.h"

namespace linserve {
namespace {

using Seconds = std::chrono::duration<double>;

LogOptions LogOptionsOf(const Config& config) {
  LogOptions options;
  options.format = config.log_format == "json" ? LogFormat::kJson : LogFormat::kHuman;
  if (config.log_level == "debug") options.level = LogLevel::kDebug;
  if (config.log_level == "warning") options.level = LogLevel::kWarning;
  if (config.log_level == "error") options.level = LogLevel::kError;
  return options;
}

absl::StatusOr<std::unique_ptr<ServedModel>> LoadServed(const ModelDirectory& directory,
                                                        const Config& config,
                                                        const DevicePlan& devices, Metrics& metrics,
                                                        std::function<void()> on_ready_change) {
  const auto start = std::chrono::steady_clock::now();
  auto serving = ServingOptionsFor(directory.path, config.serving);
  if (!serving.ok()) return serving.status();
  const ReplicaPlan plan = serving->Replicas(devices.accelerators());
  auto tokenizer = LoadTokenizer(directory.path, *serving);
  if (!tokenizer.ok()) return tokenizer.status();
  LoadOptions load = LoadOptionsFor(*serving, plan);
  if (*tokenizer != nullptr) {
    load.accept = [path = directory.path, own = *tokenizer](const Signature& signature) {
      return CheckTokenizer(path, *own, signature);
    };
  }
  EngineOptions options = serving->ForEngine(plan);
  options.name = directory.name + "/" + std::to_string(directory.version);
  options.on_ready_change = std::move(on_ready_change);
  auto engine = Engine::Start(options, ReplicasOf(directory.path, load, devices.devices),
                              metrics.ForModel(directory.name, directory.version));
  if (!engine.ok()) return engine.status();
  const ModelInfo& info = (*engine)->info();
  Log(LogLevel::kInfo, "model ready",
      {{"model", directory.name},
       {"version", directory.version},
       {"architecture", info.architecture},
       {"parameters", info.parameters},
       {"device", absl::StrJoin(devices.devices, ",")},
       {"dtype", std::string(Name(info.dtype))},
       {"padding", serving->padding},
       {"text", *tokenizer != nullptr},
       {"replicas", options.replicas},
       {"threads", load.threads},
       {"replicas_because", plan.reason},
       {"max_batch_tokens", options.policy.max_tokens},
       {"seconds", Seconds(std::chrono::steady_clock::now() - start).count()}});
  auto model = std::make_unique<ServedModel>();
  model->name = directory.name;
  model->version = directory.version;
  model->default_pooling = PoolingFromName(serving->pooling).value_or(Pooling::kNone);
  model->tokenizer = *std::move(tokenizer);
  model->engine = *std::move(engine);
  return model;
}

absl::StatusOr<std::shared_ptr<GrpcServer>> StartGrpc(const Config& config,
                                                      ModelRepository& repository,
                                                      Metrics& metrics) {
  GrpcOptions options;
  absl::Status status =
      ReadAddress("grpc_address", config.grpc_address, config.tls, options.host, options.port);
  if (!status.ok()) return status;
  options.unix_socket = config.grpc_unix_socket;
  options.max_connection_age = std::chrono::duration_cast<std::chrono::milliseconds>(
      Seconds(config.max_connection_age_seconds));
  options.max_upload_pause = std::chrono::duration_cast<std::chrono::milliseconds>(
      Seconds(config.max_upload_pause_seconds));
  options.max_message_bytes = config.max_message_bytes;
  options.max_sequences_per_request = config.max_sequences_per_request;
  options.max_text_bytes = config.max_text_bytes;
  options.max_requests_per_stream = config.max_requests_per_stream;
  options.chunk_bytes = config.chunk_bytes;
  options.version = kVersion;
  options.tls = config.tls;
  options.tokens_file = config.tokens_file;
  options.inflight = config.Inflight();
  options.max_streams_per_connection = config.max_streams_per_connection;
  return GrpcServer::Start(options, repository, metrics);
}

void Drain(const Config& config, ModelRepository& repository, GrpcServer& grpc, int signal) {
  const auto timeout = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      Seconds(config.drain_timeout_seconds));
  const auto start = std::chrono::steady_clock::now();
  Log(LogLevel::kInfo, "draining",
      {{"signal", std::string(strsignal(signal))},
       {"timeout_seconds", config.drain_timeout_seconds}});
  grpc.Drain();
  const size_t given_up = repository.Drain(start + timeout);
  // What is computed still has to be written; a reader that stalls is not waited for long.
  constexpr std::chrono::seconds kLastWrites(2);
  grpc.Shutdown(std::chrono::system_clock::now() +
                std::max<std::chrono::system_clock::duration>(
                    kLastWrites, start + timeout - std::chrono::steady_clock::now()));
  Log(given_up == 0 ? LogLevel::kInfo : LogLevel::kWarning, "drained",
      {{"seconds", Seconds(std::chrono::steady_clock::now() - start).count()},
       {"sequences_given_up", static_cast<int64_t>(given_up)}});
}

absl::StatusOr<ManagerOptions> ManagerOptionsOf(const Config& config) {
  auto versions = VersionPolicy::Parse(config.version_policy);
  if (!versions.ok()) return versions.status();
  ManagerOptions options;
  options.root = config.model_repository;
  options.links = config.follow_links ? Links::kAnywhere : Links::kInside;
  options.versions = *std::move(versions);
  options.poll =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(config.repository_poll_seconds));
  options.max_model_bytes = config.max_model_bytes;
  return options;
}

// Before anything else of LibTorch: see OpenDevicePlugin().
absl::StatusOr<DevicePlan> PrepareDevices(const Config& config, Metrics& metrics) {
  auto plan = PlanDevices(config.device);
  if (!plan.ok()) return plan;
  metrics.SetDeviceFallback(plan->fallback);
  if (!plan->fallback.empty()) {
    Log(LogLevel::kInfo, "computing on the CPU", {{"because", plan->reason}});
  }
  for (int64_t i = 0; i < plan->accelerators(); ++i) {
    const std::string& device = plan->devices[static_cast<size_t>(i)];
    if (config.max_device_bytes > 0) {
      if (absl::Status status = LimitMemory(device, config.max_device_bytes); !status.ok()) {
        return status;
      }
    }
    metrics.AddDevice(device, [device] { return UseOf(device); });
    Log(LogLevel::kInfo, "device",
        {{"device", device}, {"description", plan->descriptions[static_cast<size_t>(i)]}});
  }
  return plan;
}

// Blocks until all models are loaded. A broken version is survived where another one of its model
// is served in its place, and without `exit_on_error` a broken model where there is another one.
absl::Status LoadAll(ModelManager& manager, const ModelRepository& repository, bool exit_on_error) {
  std::promise<absl::Status> loaded;
  manager.Refresh([&](const absl::Status& status) { loaded.set_value(status); });
  absl::Status status = loaded.get_future().get();
  for (const VersionStatus& version : repository.Index()) {
    if (exit_on_error && !repository.Find(version.name, 0).ok()) return status;
  }
  return repository.List().empty() ? status : absl::OkStatus();
}

// On SIGHUP.
void Reload(ModelManager& manager) {
  Log(LogLevel::kInfo, "reloading changed models", {{"signal", "Hangup"}});
  manager.Refresh([](const absl::Status& status) {
    Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "reloaded",
        {{"status", status.ok() ? "ok" : std::string(status.message())}});
  });
}

// As many connections as the system allows: gRPC does not recover from having had too few
// descriptors.
void AllowAllDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    Log(LogLevel::kWarning, "the limit of open files stays as it is",
        {{"error", std::string(std::strerror(errno))}});
  }
}

}  // namespace

absl::Status RunServer(const Config& config) {
  const auto start = std::chrono::steady_clock::now();
  Signals signals;
  ConfigureLog(LogOptionsOf(config));
  AllowAllDescriptors();
  SetProcessors(config.processors);
  if (!config.trace.empty()) {
    if (auto opened = OpenTrace(config.trace, config.trace_max_bytes); !opened.ok()) return opened;
  }
  auto options = ManagerOptionsOf(config);
  if (!options.ok()) return options.status();
  if (auto found = ScanRepository(options->root, options->links); !found.ok()) {
    return found.status();
  }

  Metrics metrics({kVersion, kCommit, TorchVersion()});
  const auto devices = PrepareDevices(config, metrics);
  if (!devices.ok()) return devices.status();
  std::mutex telling;
  ModelRepository repository(metrics);
  std::atomic<Phase> phase = Phase::kLoading;
  signals.Watch();
  auto grpc = StartGrpc(config, repository, metrics);
  if (!grpc.ok()) return grpc.status();
  ModelManager manager(
      *std::move(options), repository, metrics,
      [&](const ModelDirectory& directory) {
        const auto tell = [&repository, &telling, server = std::weak_ptr(*grpc),
                           name = directory.name] {
          const std::scoped_lock one_after_the_other(telling);
          if (const auto alive = server.lock()) {
            alive->SetModelServing(name, repository.Find(name, 0).ok());
          }
        };
        return LoadServed(directory, config, *devices, metrics, tell);
      },
      [&](const std::string& model, bool ready) { (*grpc)->SetModelServing(model, ready); });
  auto http = StartHttp(config, metrics, repository, **grpc, phase);
  if (!http.ok()) return http.status();
  if (absl::Status loaded = LoadAll(manager, repository, config.exit_on_error); !loaded.ok()) {
    return loaded;
  }
  if (config.allow_model_control) (*grpc)->AllowModelControl(manager);
  const MemoryTrim memory_trim((*grpc)->context().inflight);
  const Periodic liveness([&repository, &server = **grpc] {
    server.SetLive(!repository.stuck());
    return std::chrono::seconds(1);
  });
  (*grpc)->SetServing(true);
  phase = Phase::kReady;
  signals.Ready([&manager] { Reload(manager); });
  Log(LogLevel::kInfo, "ready",
      {{"grpc_port", static_cast<int64_t>((*grpc)->port())},
       {"http_port", static_cast<int64_t>(http->all->port())},
       {"metrics_port", static_cast<int64_t>((http->pages ? http->pages : http->all)->port())},
       {"models", static_cast<int64_t>(repository.List().size())},
       {"seconds", Seconds(std::chrono::steady_clock::now() - start).count()}});

  const int signal = signals.WaitForEnd();
  phase = Phase::kDraining;
  (*grpc)->SetServing(false);
  if (config.drain_delay_seconds > 0) {
    Log(LogLevel::kInfo, "not ready, and serving on", {{"seconds", config.drain_delay_seconds}});
    std::this_thread::sleep_for(Seconds(config.drain_delay_seconds));
  }
  Drain(config, repository, **grpc, signal);
  CloseTrace();
  return absl::OkStatus();
}

}  // namespace linserve
