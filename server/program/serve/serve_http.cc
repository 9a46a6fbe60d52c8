#include "program/serve/serve_http.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/sequence/signature_json.h"
#include "core/system/loopback.h"
#include "core/system/memory.h"
#include "core/system/version.h"
#include "http/framing/field_reader.h"
#include "rest/rest_routes.h"
#include "rest/tei/tei_routes.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kLoading:
      return "loading";
    case Phase::kDraining:
      return "draining";
    case Phase::kReady:
      break;
  }
  return "ready";
}

absl::Status Readiness(Phase phase, const ModelRepository& repository) {
  return phase == Phase::kReady ? repository.Ready() : absl::UnavailableError(NameOf(phase));
}

nlohmann::json Served(const ServedModel& model) {
  const ModelInfo& info = model.engine->info();
  const QueueLimits limits = model.engine->queue_limits();
  nlohmann::json served = ToJson(info.signature);
  served.update({{"architecture", info.architecture},
                 {"parameters", info.parameters},
                 {"dtype", Name(info.dtype)},
                 {"replicas", model.engine->options().replicas},
                 {"threads", model.threads},
                 {"text", model.tokenizer != nullptr},
                 {"max_queue_sequences", limits.max_sequences},
                 {"cache_bytes", model.engine->options().cache_bytes}});
  return served;
}

std::string StatusJson(const ModelRepository& repository, Phase phase) {
  nlohmann::json models = nlohmann::json::array();
  for (const VersionStatus& version : repository.Index()) {
    nlohmann::json& model = models.emplace_back(nlohmann::json{
        {"name", version.name}, {"version", version.version}, {"state", Name(version.state)}});
    if (!version.reason.empty()) model["reason"] = version.reason;
    if (const auto served = repository.Served(version.name, version.version)) {
      model.update(Served(*served));
    }
  }
  return nlohmann::json{
      {"version", kVersion}, {"commit", kCommit}, {"state", NameOf(phase)}, {"models", models}}
      .dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns how many descriptors HTTP may have: gRPC does not recover from having too few.
int ShareOfDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<int>::max();
  return static_cast<int>(
      std::clamp<rlim_t>(limit.rlim_cur / 4, 1, std::numeric_limits<int>::max()));
}

// Returns how many heads of requests, as long as they may be, an eighth of the memory has room for.
int ShareOfMemory() {
  constexpr int64_t kLeast = 64;
  const int64_t heads = MemoryBytes() / 8 / static_cast<int64_t>(kLongestFields);
  return static_cast<int>(std::clamp<int64_t>(heads, kLeast, std::numeric_limits<int>::max()));
}

// Adds /metrics and the status page, with health, on a port of their own or with all else.
void AddPages(const Metrics& metrics, const ModelRepository& repository, ServiceContext& context,
              const std::atomic<Phase>& phase, const RecentMetrics& recent,
              HttpHandlers& handlers) {
  handlers.metrics = [&](MetricsFormat format) { return metrics.Scrape(format); };
  handlers.status_json = [&] { return StatusJson(repository, phase); };
  handlers.samples_now = [&] {
    return RecentMetrics::ToJson(std::chrono::system_clock::now(), metrics.Scrape());
  };
  handlers.samples_hour = [&] { return recent.ToJson(); };
  handlers.authorize = [&](const HttpRequest& request) {
    const auto caller = context.access->Authenticate(request.Header("authorization"), request.peer);
    return caller.ok() ? (*caller)->May(Right::kMetrics) : caller.status();
  };
}

}  // namespace

void WarnOfPlainText(const char* option, const ListenAddress& address, const TlsFiles& tls) {
  if (tls.enabled() || IsLoopback(address.host)) return;
  Log(LogLevel::kWarning, "plain text is served beyond this machine",
      {{"option", std::string(option)},
       {"address", address.ToString()},
       {"advice",
        "set tls_certificate and tls_private_key, or keep it to a network that you "
        "trust"}});
}

absl::StatusOr<HttpServers> StartHttp(const Config& config, const Metrics& metrics,
                                      const ModelRepository& repository, GrpcServer& grpc,
                                      const std::atomic<Phase>& phase) {
  ServiceContext& context = grpc.context();
  const TlsFiles& tls = config.grpc.access.tls;
  HttpOptions options;
  options.tls = tls;
  options.host = config.http.all.host;
  options.port = config.http.all.port;
  options.max_body_bytes = static_cast<size_t>(config.grpc.limits.max_message_bytes);
  options.limits.connections =
      std::min({options.limits.connections, ShareOfDescriptors(), ShareOfMemory()});
  options.limits.idle =
      std::chrono::duration_cast<std::chrono::milliseconds>(config.http.keep_alive);
  options.cors_origins = config.http.cors_origins;
  WarnOfPlainText("http_address", config.http.all, tls);
  HttpHandlers health;
  health.live = [&] { return !repository.stuck() && grpc.Accepts(); };
  health.ready = [&] { return Readiness(phase, repository); };
  health.replied = [&context](int status) { context.metrics.HttpReplied(status); };
  HttpHandlers handlers = health;
  handlers.routes = RestRoutes(context);
  AddTeiRoutes(context, handlers.routes);
  handlers.forms = RestForms();
  AddTeiForms(handlers.forms);
  HttpServers servers;
  servers.recent = std::make_unique<RecentMetrics>();
  servers.sampling = std::make_unique<Periodic>([&metrics, &recent = *servers.recent] {
    recent.Add(std::chrono::system_clock::now(), metrics.Scrape());
    return RecentMetrics::kStep;
  });
  if (config.http.pages) {
    HttpOptions apart = options;
    apart.flag = "--metrics-address";
    apart.host = config.http.pages->host;
    apart.port = config.http.pages->port;
    WarnOfPlainText("metrics_address", *config.http.pages, tls);
    AddPages(metrics, repository, context, phase, *servers.recent, health);
    auto pages = HttpServer::Start(apart, std::move(health));
    if (!pages.ok()) return pages.status();
    servers.pages = *std::move(pages);
  } else {
    AddPages(metrics, repository, context, phase, *servers.recent, handlers);
  }
  auto all = HttpServer::Start(options, std::move(handlers));
  if (!all.ok()) return all.status();
  servers.all = *std::move(all);
  return servers;
}

}  // namespace linserve
