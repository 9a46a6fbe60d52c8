#include "program/serve/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "access/certificate_watch.h"
#include "core/system/processors.h"
#include "core/system/version.h"
#include "core/threads/mutex.h"
#include "core/threads/periodic.h"
#include "models/devices.h"
#include "models/model_loader.h"
#include "program/serve/load_served.h"
#include "program/serve/memory_trim.h"
#include "program/serve/prepare_memory.h"
#include "program/serve/serve_http.h"
#include "program/serve/signals.h"
#include "repository/model_manager.h"
#include "repository/repository.h"
#include "rpc/grpc_server.h"
#include "rpc/otlp/otlp_sender.h"
#include "serving/service_context.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "telemetry/resource.h"
#include "telemetry/trace.h"

namespace linserve {
namespace {

using Seconds = std::chrono::duration<double>;

// The process may take so long to end after the drain's own time.
constexpr std::chrono::seconds kLastSeconds(5);
// Of it, spans that are still to be sent may take so long.
constexpr std::chrono::seconds kLastSpans(2);

absl::StatusOr<std::shared_ptr<GrpcServer>> StartGrpc(const Config& config,
                                                      ModelRepository& repository,
                                                      Metrics& metrics) {
  WarnOfPlainText("grpc_address", config.grpc.address, config.grpc.access.tls);
  GrpcOptions options = config.grpc;
  options.version = kVersion;
  return GrpcServer::Start(options, repository, metrics);
}

// Answers what was accepted, until the deadline. Returns false if a load goes on that cannot be
// ended.
bool Drain(const Config& config, ModelRepository& repository, ModelManager& manager,
           GrpcServer& grpc, int signal) {
  const auto start = std::chrono::steady_clock::now();
  Log(LogLevel::kInfo, "draining",
      {{"signal", std::string(strsignal(signal))},
       {"timeout_seconds", Seconds(config.drain_timeout).count()}});
  manager.Close();
  grpc.Drain();
  const size_t given_up = repository.Drain(start + config.drain_timeout);
  const bool ended = manager.Drain(start + config.drain_timeout);
  // Results that are computed still have to be written; a reader that stalls is not waited for
  // long.
  constexpr std::chrono::seconds kLastWrites(2);
  grpc.Shutdown(std::chrono::system_clock::now() +
                std::max<std::chrono::system_clock::duration>(
                    kLastWrites, start + config.drain_timeout - std::chrono::steady_clock::now()));
  Log(given_up == 0 && ended ? LogLevel::kInfo : LogLevel::kWarning, "drained",
      {{"seconds", Seconds(std::chrono::steady_clock::now() - start).count()},
       {"sequences_given_up", static_cast<int64_t>(given_up)},
       {"load_given_up", !ended}});
  return ended;
}

// Plans the devices. It is called before anything else of LibTorch: see OpenDevicePlugin().
absl::StatusOr<DevicePlan> PrepareDevices(const Config& config, Metrics& metrics) {
  auto plan = PlanDevices(config.devices.device);
  if (!plan.ok()) return plan;
  metrics.SetDeviceFallback(plan->fallback);
  if (!plan->fallback.empty()) {
    Log(LogLevel::kInfo, "computing on the CPU", {{"because", plan->reason}});
  }
  for (int64_t i = 0; i < plan->accelerators(); ++i) {
    const std::string& device = plan->devices[static_cast<size_t>(i)];
    if (config.devices.max_device_bytes > 0) {
      if (absl::Status status = LimitMemory(device, config.devices.max_device_bytes);
          !status.ok()) {
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
// is served in its place, and without `exit_on_error` a broken model where there is another model.
absl::Status LoadAll(ModelManager& manager, const ModelRepository& repository, bool exit_on_error) {
  std::promise<absl::Status> loaded;
  manager.Refresh([&](const absl::Status& status) { loaded.set_value(status); });
  absl::Status status = loaded.get_future().get();
  for (const VersionStatus& version : repository.Index()) {
    if (exit_on_error && !repository.Find(version.name, 0).ok()) return status;
  }
  return repository.List().empty() ? status : absl::OkStatus();
}

void LogReady(const GrpcServer& grpc, const HttpServers& http, const ModelRepository& repository,
              Seconds took) {
  Log(LogLevel::kInfo, "ready",
      {{"grpc_port", static_cast<int64_t>(grpc.port())},
       {"http_port", static_cast<int64_t>(http.all->port())},
       {"metrics_port", static_cast<int64_t>((http.pages ? http.pages : http.all)->port())},
       {"models", static_cast<int64_t>(repository.List().size())},
       {"seconds", took.count()}});
}

// Reloads changed models, on SIGHUP.
void Reload(ModelManager& manager) {
  Log(LogLevel::kInfo, "reloading changed models", {{"signal", "Hangup"}});
  manager.Refresh([](const absl::Status& status) {
    Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "reloaded",
        {{"status", status.ok() ? "ok" : std::string(status.message())}});
  });
}

// Allows as many connections as the system does: gRPC does not recover from having had too few
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

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return value == nullptr ? "" : value;
}

// Sends spans to the collector, if there is one.
void StartSpans(const TraceOptions& options, Metrics& metrics) {
  if (options.collector.target.empty()) return;
  SendSpans(MakeOtlpSender(options.collector,
                           DescribeProcess(kVersion, Variable("OTEL_RESOURCE_ATTRIBUTES"),
                                           Variable("OTEL_SERVICE_NAME"))),
            metrics);
}

}  // namespace

absl::Status RunServer(Config config) {
  const auto start = std::chrono::steady_clock::now();
  Signals signals;
  ConfigureLog(config.log);
  AllowAllDescriptors();
  SetProcessors(config.devices.processors);
  if (absl::Status opened = OpenTrace(config.trace); !opened.ok()) return opened;
  const auto found = ScanRepository(config.repository.root, config.repository.links());
  if (!found.ok()) return found.status();

  Metrics metrics({kVersion, kCommit, TorchVersion()});
  const auto devices = PrepareDevices(config, metrics);
  if (!devices.ok()) return devices.status();
  const LoadContext loading{config, *devices, metrics,
                            PrepareMemory(config, *found, *devices, metrics)};
  Mutex telling;
  ModelRepository repository(metrics);
  std::atomic<Phase> phase = Phase::kLoading;
  signals.Watch();
  auto grpc = StartGrpc(config, repository, metrics);
  if (!grpc.ok()) return grpc.status();
  ModelManager manager(
      config.repository, repository, metrics,
      [&](const ModelDirectory& directory, const ModelManager::Room& room) {
        const auto tell = [&repository, &telling, server = std::weak_ptr(*grpc),
                           name = directory.name] {
          const MutexLock one_after_the_other(telling);
          if (const auto alive = server.lock()) {
            alive->SetModelServing(name, repository.Find(name, 0).ok());
          }
        };
        return LoadServed(directory, loading, room, tell);
      },
      [&](const std::string& model, bool ready) { (*grpc)->SetModelServing(model, ready); });
  auto http = StartHttp(config, metrics, repository, **grpc, phase);
  if (!http.ok()) return http.status();
  if (absl::Status loaded = LoadAll(manager, repository, config.exit_on_error); !loaded.ok()) {
    return loaded;
  }
  StartSpans(config.trace, metrics);
  if (config.allow_model_control) (*grpc)->AllowModelControl(manager);
  const MemoryTrim memory_trim((*grpc)->context().inflight);
  CertificateWatch certificate(config.grpc.access.tls, metrics);
  const Periodic liveness([&repository, &certificate, &server = **grpc] {
    server.SetLive(!repository.stuck());
    certificate.Look();
    return std::chrono::seconds(1);
  });
  (*grpc)->SetServing(true);
  phase = Phase::kReady;
  signals.Ready([&manager] { Reload(manager); },
                config.drain_delay + config.drain_timeout + kLastSeconds);
  LogReady(**grpc, *http, repository, Seconds(std::chrono::steady_clock::now() - start));

  const int signal = signals.WaitForEnd();
  phase = Phase::kDraining;
  (*grpc)->SetServing(false);
  if (config.drain_delay.count() > 0) {
    Log(LogLevel::kInfo, "not ready, and serving on",
        {{"seconds", Seconds(config.drain_delay).count()}});
    std::this_thread::sleep_for(config.drain_delay);
  }
  const bool ended = Drain(config, repository, manager, **grpc, signal);
  CloseTrace(std::chrono::steady_clock::now() + kLastSpans);
  if (!ended) {
    // A load that goes on is not waited for, and nothing that it uses may go before it does.
    *http = {};
    _exit(0);
  }
  return absl::OkStatus();
}

}  // namespace linserve
