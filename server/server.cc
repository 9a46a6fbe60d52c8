#include "server.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/pooling.h"
#include "engine/repository.h"
#include "http/http_server.h"
#include "models/model_loader.h"
#include "option_flags.h"
#include "rpc/grpc_server.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
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

// Blocked before any thread starts, so that only WaitForSignal() ever sees them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int WaitForSignal(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  return signal;
}

enum class Phase : uint8_t { kLoading, kReady, kDraining };

// What the first signal is, once the server is ready. One that comes before, while there is nothing
// to drain, and a second one end the process at once.
class SignalWaiter {
 public:
  // `phase` must outlive the process's other threads.
  SignalWaiter(const sigset_t& signals, const std::atomic<Phase>& phase)
      : first_(promise_.get_future()) {
    std::thread([signals, &phase, promise = std::move(promise_)]() mutable {
      const int signal = WaitForSignal(signals);
      if (phase == Phase::kLoading) ExitNow("signal while loading, exiting at once", signal);
      promise.set_value(signal);
      ExitNow("second signal, exiting at once", WaitForSignal(signals));
    }).detach();
  }

  int Wait() { return first_.get(); }

 private:
  [[noreturn]] static void ExitNow(const char* event, int signal) {
    Log(LogLevel::kWarning, event);
    _exit(128 + signal);
  }

  std::promise<int> promise_;
  std::future<int> first_;
};

absl::StatusOr<std::shared_ptr<const ServedModel>> LoadServed(const ModelDirectory& directory,
                                                              const Config& config,
                                                              Metrics& metrics) {
  const auto start = std::chrono::steady_clock::now();
  auto serving = ServingOptionsFor(directory.path, config.serving);
  if (!serving.ok()) return serving.status();
  const LoadOptions load = LoadOptionsFor(*serving, config.device);
  const EngineOptions options = serving->ForEngine();
  auto engine = Engine::Start(
      options, [&] { return LoadModel(directory.path, load); },
      metrics.ForModel(directory.name, directory.version));
  if (!engine.ok()) return engine.status();
  const ModelInfo& info = (*engine)->info();
  Log(LogLevel::kInfo, "model ready",
      {{"model", directory.name},
       {"version", directory.version},
       {"architecture", info.architecture},
       {"parameters", info.parameters},
       {"dtype", std::string(Name(info.dtype))},
       {"padding", serving->padding},
       {"replicas", options.replicas},
       {"threads", load.threads},
       {"replicas_because", serving->Replicas().reason},
       {"max_batch_tokens", options.policy.max_tokens},
       {"seconds", Seconds(std::chrono::steady_clock::now() - start).count()}});
  auto model = std::make_shared<ServedModel>();
  model->name = directory.name;
  model->version = directory.version;
  model->default_pooling = PoolingFromName(serving->pooling).value_or(Pooling::kNone);
  model->engine = *std::move(engine);
  return model;
}

std::string StatusJson(const ModelRepository& repository) {
  nlohmann::json models = nlohmann::json::array();
  for (const auto& model : repository.List()) {
    models.push_back({{"name", model->name},
                      {"version", model->version},
                      {"architecture", model->engine->info().architecture},
                      {"parameters", model->engine->info().parameters}});
  }
  return nlohmann::json{{"version", kVersion}, {"commit", kCommit}, {"models", models}}.dump(2);
}

absl::Status Readiness(Phase phase) {
  switch (phase) {
    case Phase::kLoading:
      return absl::UnavailableError("loading");
    case Phase::kReady:
      return absl::OkStatus();
    case Phase::kDraining:
      return absl::UnavailableError("draining");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HttpServer>> StartHttp(const Config& config, const Metrics& metrics,
                                                      const ModelRepository& repository,
                                                      const std::atomic<Phase>& phase) {
  HttpOptions options;
  absl::Status status =
      SplitAddress("http_address", config.http_address, options.host, options.port);
  if (!status.ok()) return status;
  HttpHandlers handlers;
  handlers.metrics = [&] { return metrics.Scrape(); };
  handlers.live = [] { return true; };
  handlers.ready = [&] { return Readiness(phase); };
  handlers.status_json = [&] { return StatusJson(repository); };
  return HttpServer::Start(options, std::move(handlers));
}

absl::StatusOr<std::unique_ptr<GrpcServer>> StartGrpc(const Config& config,
                                                      ModelRepository& repository,
                                                      Metrics& metrics) {
  GrpcOptions options;
  absl::Status status =
      SplitAddress("grpc_address", config.grpc_address, options.host, options.port);
  if (!status.ok()) return status;
  options.max_message_bytes = config.max_message_bytes;
  options.max_sequences_per_request = config.max_sequences_per_request;
  options.max_requests_per_stream = config.max_requests_per_stream;
  options.chunk_bytes = config.chunk_bytes;
  options.version = kVersion;
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

}  // namespace

absl::Status RunServer(const Config& config) {
  const auto start = std::chrono::steady_clock::now();
  const sigset_t signals = BlockSignals();
  ConfigureLog(LogOptionsOf(config));
  auto directories = ScanRepository(config.model_repository);
  if (!directories.ok()) return directories.status();

  Metrics metrics({kVersion, kCommit, TorchVersion()});
  ModelRepository repository(*directories);
  static std::atomic<Phase> phase = Phase::kLoading;
  SignalWaiter waiter(signals, phase);
  auto http = StartHttp(config, metrics, repository, phase);
  if (!http.ok()) return http.status();
  auto grpc = StartGrpc(config, repository, metrics);
  if (!grpc.ok()) return grpc.status();
  for (const ModelDirectory& directory : *directories) {
    (*grpc)->SetModelServing(directory.name, false);
  }
  for (const ModelDirectory& directory : *directories) {
    auto model = LoadServed(directory, config, metrics);
    if (!model.ok()) return model.status();
    repository.Add(*std::move(model));
    (*grpc)->SetModelServing(directory.name, true);
  }
  (*grpc)->SetServing(true);
  phase = Phase::kReady;
  Log(LogLevel::kInfo, "ready",
      {{"grpc_port", static_cast<int64_t>((*grpc)->port())},
       {"http_port", static_cast<int64_t>((*http)->port())},
       {"models", static_cast<int64_t>(directories->size())},
       {"seconds", Seconds(std::chrono::steady_clock::now() - start).count()}});

  const int signal = waiter.Wait();
  phase = Phase::kDraining;
  Drain(config, repository, **grpc, signal);
  return absl::OkStatus();
}

}  // namespace linserve
