#include "program/serve/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "access/certificate_watch.h"
#include "core/system/memory.h"
#include "core/system/version.h"
#include "core/threads/mutex.h"
#include "core/threads/periodic.h"
#include "models/model_loader.h"
#include "program/serve/live_config.h"
#include "program/serve/load_served.h"
#include "program/serve/memory_trim.h"
#include "program/serve/prepare_server.h"
#include "program/serve/serve_http.h"
#include "program/serve/signals.h"
#include "repository/model_manager.h"
#include "repository/repository.h"
#include "rpc/grpc_server.h"
#include "rpc/otlp/otlp_sender.h"
#include "serving/service_context.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "telemetry/trace/resource.h"
#include "telemetry/trace/trace.h"

namespace linserve {
namespace {

using Seconds = std::chrono::duration<double>;

// Spans that are still to be sent may take so long of the time to end behind the drain's own.
constexpr std::chrono::seconds kLastSpans(2);
constexpr std::chrono::seconds kLastReload(1);

// Returns how long the process may take to end: a little more than the drain's own time.
std::chrono::nanoseconds TimeToEnd(const Config& config) {
  constexpr std::chrono::seconds kLastSeconds(5);
  return config.drain_delay + config.drain_timeout + kLastSeconds;
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

// Returns a value that stands as JSON as the log shows it: texts without their quotes.
std::string Plain(const std::string& value) {
  const auto parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  return parsed.is_string() ? parsed.get<std::string>() : value;
}

// Says where a variable overrides what somebody wrote into the configuration file: manifests and
// images set variables, too.
void LogOverridden(const std::vector<OptionTable::Description>& options, const std::string& file) {
  if (file.empty()) return;
  for (const OptionTable::Description& option : options) {
    const bool by_variable = option.origin.starts_with("variable ");
    if (!by_variable || option.overridden_origin != file) continue;
    Log(LogLevel::kInfo, "a variable overrides the configuration file",
        {{"option", option.name},
         {"value", Plain(option.current)},
         {"by", option.origin},
         {"in_place_of", Plain(option.overridden)},
         {"file", option.overridden_origin}});
  }
}

// Logs what differs in a configuration that was read again.
void LogChanges(const std::vector<OptionTable::Change>& changes) {
  for (const OptionTable::Change& change : changes) {
    Log(LogLevel::kInfo,
        change.taken ? "option changed" : "option changes with the next start only",
        {{"option", change.name}, {"from", Plain(change.before)}, {"to", Plain(change.after)}});
  }
}

// Reads the configuration again, and applies what may change while the server runs.
absl::Status ReloadConfig(LiveConfig& live, GrpcServer& grpc, const ModelRepository& repository,
                          Signals& signals) {
  const LogLevel level = live.Get().log.level;
  const auto changes = live.Reload();
  if (!changes.ok()) {
    grpc.context().metrics.ReloadFailed(Reload::kConfig);
    Log(LogLevel::kWarning, "the configuration stays as it was",
        {{"because", std::string(changes.status().message())}});
    return changes.status();
  }
  const Config config = live.Get();
  SetLogLevel(std::min(level, config.log.level));  // so that the log says that it says less
  LogChanges(*changes);
  LogOverridden(live.Describe(), live.file());
  SetLogLevel(config.log.level);
  grpc.SetInflightLimits(config.grpc.inflight);
  grpc.context().metrics.SetMemoryPlan(MemoryPart::kInflight,
                                       config.grpc.inflight.Resolved().max_bytes);
  SetQueueLimits(repository, config);
  signals.AllowToEnd(TimeToEnd(config));
  return absl::OkStatus();
}

// Reloads the configuration and changed models, on SIGHUP.
void ReloadAll(LiveConfig& live, ModelManager& manager, GrpcServer& grpc,
               const ModelRepository& repository, Signals& signals) {
  Log(LogLevel::kInfo, "reloading the configuration and changed models", {{"signal", "Hangup"}});
  const absl::Status config = ReloadConfig(live, grpc, repository, signals);
  manager.Refresh([&, config](const absl::Status& models) {
    // A model that was being loaded meanwhile has the limits of before.
    SetQueueLimits(repository, live.Get());
    const absl::Status& status = config.ok() ? models : config;
    Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "reloaded",
        {{"status", status.ok() ? "ok" : std::string(status.message())}});
  });
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

// Loads models for the manager. Where one has lost its devices, or has them again, `grpc` is told.
ModelManager::Loader LoaderOf(const LoadContext& loading, const ModelRepository& repository,
                              const std::weak_ptr<GrpcServer>& grpc) {
  const auto telling = std::make_shared<Mutex>();
  return [&, grpc, telling](const ModelDirectory& directory, const ModelManager::Room& room) {
    const auto tell = [&repository, telling, grpc, name = directory.name] {
      const MutexLock one_after_the_other(*telling);
      if (const auto alive = grpc.lock()) {
        alive->SetModelServing(name, repository.Find(name, 0).ok());
      }
    };
    return LoadServed(directory, loading, room, tell);
  };
}

// Ends serving, as a signal has asked for. Returns false if something goes on all the same.
bool EndServing(const Config& config, std::atomic<Phase>& phase, ModelRepository& repository,
                ModelManager& manager, GrpcServer& grpc, int signal) {
  phase = Phase::kDraining;
  grpc.SetServing(false);
  if (config.drain_delay.count() > 0) {
    Log(LogLevel::kInfo, "not ready, and serving on",
        {{"seconds", Seconds(config.drain_delay).count()}});
    std::this_thread::sleep_for(config.drain_delay);
  }
  const bool ended = Drain(config, repository, manager, grpc, signal);
  CloseTrace(std::chrono::steady_clock::now() + kLastSpans);
  return ended;
}

}  // namespace

absl::Status RunServer(Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  Signals signals;
  Config config = settings.config;
  ConfigureLog(config.log);
  LogOverridden(settings.table.Describe(), settings.sources.file);
  if (absl::Status opened = OpenTrace(config.trace); !opened.ok()) return opened;
  Metrics metrics({kVersion, kCommit, TorchVersion()});
  const auto prepared = PrepareServer(config, metrics);
  if (!prepared.ok()) return prepared.status();
  LiveConfig live(settings, config);
  const LoadContext loading{live, prepared->devices, metrics, prepared->sessions};
  ModelRepository repository(metrics, config.repository.aliases);
  std::atomic<Phase> phase = Phase::kLoading;
  signals.Watch();
  auto grpc = StartGrpc(config, repository, metrics);
  if (!grpc.ok()) return grpc.status();
  ModelManager manager(
      config.repository, repository, metrics, LoaderOf(loading, repository, *grpc),
      [&](const std::string& model, bool ready) { (*grpc)->SetModelServing(model, ready); });
  auto http = StartHttp(config, metrics, repository, **grpc, phase);
  if (!http.ok()) return http.status();
  if (absl::Status loaded = LoadAll(manager, repository, config.exit_on_error); !loaded.ok()) {
    return loaded;
  }
  StartSpans(config.trace, metrics);
  if (config.allow_model_control) (*grpc)->AllowModelControl(manager);
  GiveBackCode();
  const MemoryTrim memory_trim((*grpc)->context().inflight);
  CertificateWatch certificate(config.grpc.access.tls, metrics);
  const Periodic liveness([&repository, &certificate, &server = **grpc] {
    server.SetLive(!repository.stuck());
    server.SetModelsReady(repository.Ready().ok());
    certificate.Look();
    server.context().access->Look();
    return std::chrono::seconds(1);
  });
  (*grpc)->SetServing(true);
  phase = Phase::kReady;
  signals.Ready([&] { ReloadAll(live, manager, **grpc, repository, signals); }, TimeToEnd(config));
  LogReady(**grpc, *http, repository, Seconds(std::chrono::steady_clock::now() - start));

  const int signal = signals.WaitForEnd();
  const bool ended = EndServing(live.Get(), phase, repository, manager, **grpc, signal);
  if (!signals.WaitForReload(kLastReload) || !ended) {
    // What goes on is not waited for, and nothing that it uses may go before it does.
    *http = {};
    _exit(0);
  }
  return absl::OkStatus();
}

}  // namespace linserve
