#include "rpc/grpc_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/system/memory.h"
#include "core/system/processors.h"
#include "rpc/embedding/embedding_service.h"
#include "rpc/grpc_credentials.h"
#include "rpc/grpc_drain.h"
#include "rpc/guards/call_guard.h"
#include "rpc/guards/idle_tick.h"
#include "rpc/guards/listener_check.h"
#include "rpc/guards/memory_guard.h"
#include "rpc/oip/inference_service.h"
#include "rpc/reflection_service.h"
#include "rpc/tei/tei_services.h"
#include "rpc/unknown_service.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

// Writes gRPC's own lines into our log, in its form.
void LogFromGrpc(gpr_log_func_args* line) {
  // A line about a handshake is not of interest: any scanner of ports makes handshakes fail, and so
  // does our own ListenerCheck under TLS.
  const bool of_interest =
      line->severity == GPR_LOG_SEVERITY_ERROR &&
      std::string_view(line->message).find("andshake failed") == std::string_view::npos;
  const LogLevel level = of_interest ? LogLevel::kWarning : LogLevel::kDebug;
  Log(level, "grpc", {{"text", std::string(line->message)}});
}

// Logs protobuf's messages at a low level, because a caller's strings that are not UTF-8 are not
// worth a line each.
void LogFromProtobuf(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/,
                     const std::string& message) {
  Log(level == google::protobuf::LOGLEVEL_FATAL ? LogLevel::kError : LogLevel::kDebug, "protobuf",
      {{"text", message}});
}

// Stands before a model's name in the name of a service that health tells of.
constexpr const char* kOfModels = "linserve/";

using Reflection = grpc::reflection::v1::ServerReflection;
using ReflectionAlpha = grpc::reflection::v1alpha::ServerReflection;

// Texts are tokenized a hundred times as fast as they are embedded. But they may be long, and cut
// off after a few tokens, so that half of the processors may be needed.
int64_t TokenizerThreads() { return std::clamp<int64_t>(Processors() / 2, 2, 16); }

// Returns the names of the services that compute, and that health tells of.
std::vector<std::string> ComputingServices() {
  std::vector<std::string> names = TeiServices::Names();
  names.insert(names.begin(), {v1::EmbeddingService::service_full_name(),
                               inference::GRPCInferenceService::service_full_name()});
  return names;
}

std::vector<std::string> ServiceNames() {
  std::vector<std::string> names = ComputingServices();
  names.insert(names.end(), {"grpc.health.v1.Health", Reflection::service_full_name(),
                             ReflectionAlpha::service_full_name()});
  return names;
}

// Makes the library log as this program does.
void SetUpGrpc() {
  // gRPC is never shut down as a library: its thread that waits for a stalled reader's connection
  // to be writable, for ten seconds, does not hear that the connection is gone.
  [[maybe_unused]] static const bool initialized = (grpc_init(), true);
  gpr_set_log_function(LogFromGrpc);
  google::protobuf::SetLogHandler(LogFromProtobuf);
  grpc::EnableDefaultHealthCheckService(true);
}

}  // namespace

struct GrpcServer::Impl {
  Impl(ModelRepository& repository, Metrics& metrics, const GrpcOptions& options,
       std::unique_ptr<Access> access)
      : context{repository,
                metrics,
                options.limits,
                options.version,
                std::move(access),
                std::make_shared<Inflight>(options.inflight, metrics),
                StepPool(TokenizerThreads())},
        embedding(context),
        inference(context),
        tei(context) {}

  // Listens on the addresses, and serves from then on. UNAVAILABLE if one cannot be had.
  absl::Status Listen(const GrpcOptions& options);
  // Begins to look after connections and streams.
  void Guard(const GrpcOptions& options, Metrics& metrics);

  // Sets the health of a service. Watchers hear of it only if it is news.
  void Tell(const std::string& service, bool serving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(health_mutex) {
    const auto [told, is_new] = health.try_emplace(service, serving);
    if (!is_new && std::exchange(told->second, serving) == serving) return;
    server->GetHealthCheckService()->SetServingStatus(service, serving);
  }

  // Sets the health of the whole server.
  void TellServing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(health_mutex) {
    const bool ready = serves && models_ready;
    context.ready = ready;
    Tell("", ready);
    for (const std::string& service : ComputingServices()) Tell(service, ready);
  }

  // Tells whoever asks for a model that the server is about to end.
  void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(health_mutex) {
    context.leaving = true;
    for (const auto& [service, serving] : health) {
      if (service.starts_with(kOfModels)) Tell(service, false);
    }
  }

  ServiceContext context;
  EmbeddingService embedding;
  InferenceService inference;
  TeiServices tei;
  ReflectionService<Reflection> reflection{ServiceNames()};
  ReflectionService<ReflectionAlpha> reflection_alpha{ServiceNames()};
  UnknownService unknown{ServiceNames()};
  // Bounds what is not whole yet, which Inflight does not know.
  grpc::ResourceQuota quota{"linserve"};
  int port = 0;
  std::string unix_socket;
  std::shared_ptr<grpc::ServerCredentials> credentials;  // outlive the server, which asks them
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<IdleTick> tick;
  std::unique_ptr<Periodic> look_up;
  std::unique_ptr<ListenerCheck> listener;
  std::unique_ptr<CallGuard> calls;
  std::unique_ptr<MemoryGuard> memory;
  bool drained_under_load = false;
  Mutex health_mutex;
  std::map<std::string, bool> health ABSL_GUARDED_BY(health_mutex);  // what was told last
  bool serves ABSL_GUARDED_BY(health_mutex) = false;
  bool models_ready ABSL_GUARDED_BY(health_mutex) = true;
};

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GrpcServer::~GrpcServer() { Shutdown(std::chrono::system_clock::now()); }

absl::Status GrpcServer::Impl::Listen(const GrpcOptions& options) {
  const std::string address = options.address.ToString();
  grpc::ServerBuilder builder;
  options.Configure(builder);
  quota.Resize(static_cast<size_t>(options.inflight.Resolved().max_bytes));
  builder.SetResourceQuota(quota);
  builder.AddListeningPort(address, credentials, &port);
  int unix_port = 1;
  unix_socket = options.unix_socket.path;
  if (!unix_socket.empty()) {
    if (absl::Status free = options.unix_socket.CheckFree(); !free.ok()) return free;
    builder.AddListeningPort("unix:" + unix_socket, grpc::InsecureServerCredentials(), &unix_port);
  }
  builder.RegisterService(&embedding);
  builder.RegisterService(&inference);
  for (grpc::Service* service : tei.All()) builder.RegisterService(service);
  builder.RegisterService(&reflection);
  builder.RegisterService(&reflection_alpha);
  builder.RegisterCallbackGenericService(&unknown);
  {
    const ModeOfNewFiles mode(options.unix_socket.mode);
    server = builder.BuildAndStart();
  }
  // gRPC gives up at the first address that it cannot listen on, and says nothing of the next.
  if (port == 0) {
    return absl::UnavailableError("cannot listen on " + address +
                                  " for gRPC: another program has it, or the host is not this "
                                  "machine's; choose another with --grpc-address HOST:PORT");
  }
  if (server == nullptr || unix_port == 0) {
    return absl::UnavailableError("cannot listen on the Unix socket " + unix_socket +
                                  ": its directory must exist and be writable, and the path be "
                                  "shorter than 108 bytes; choose another with --grpc-unix-socket");
  }
  return absl::OkStatus();
}

void GrpcServer::Impl::Guard(const GrpcOptions& options, Metrics& metrics) {
  tick = std::make_unique<IdleTick>(*server);
  look_up = std::make_unique<Periodic>([this] {
    context.streams.LookUpAll();
    return std::chrono::seconds(1);
  });
  listener = std::make_unique<ListenerCheck>(options.address.host, port);
  const int64_t all = MemoryBytes();
  calls = std::make_unique<CallGuard>(options.max_streams_per_connection, all, port, unix_socket,
                                      metrics);
  memory = std::make_unique<MemoryGuard>(all, port, unix_socket, metrics);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcOptions& options,
                                                              ModelRepository& repository,
                                                              Metrics& metrics) {
  SetUpGrpc();
  auto credentials = CredentialsOf(options.access.tls);
  if (!credentials.ok()) return credentials.status();
  auto access = Access::Open(options.access.tokens_file, metrics);
  if (!access.ok()) return access.status();
  for (const char* rpc : {"Embed",
                          "EmbedStream",
                          "Generate",
                          "ModelInfer",
                          "ModelStreamInfer",
                          "tei.Info",
                          "tei.Embed",
                          "tei.EmbedStream",
                          "tei.EmbedSparse",
                          "tei.EmbedSparseStream",
                          "tei.EmbedAll",
                          "tei.EmbedAllStream",
                          "tei.Tokenize",
                          "tei.TokenizeStream",
                          "tei.Decode",
                          "tei.DecodeStream",
                          "tei.Predict",
                          "tei.PredictStream",
                          "tei.PredictPair",
                          "tei.PredictPairStream",
                          "tei.Rerank"}) {
    metrics.ForRpc(rpc);  // so that its series are there before its first call
  }
  auto impl = std::make_unique<Impl>(repository, metrics, options, *std::move(access));
  impl->credentials = *std::move(credentials);
  if (absl::Status listens = impl->Listen(options); !listens.ok()) return listens;
  impl->Guard(options, metrics);
  std::unique_ptr<GrpcServer> server(new GrpcServer(std::move(impl)));
  server->SetServing(false);
  server->SetLive(true);
  return server;
}

int GrpcServer::port() const { return impl_->port; }

bool GrpcServer::Accepts() { return impl_->listener->Accepts(); }

ServiceContext& GrpcServer::context() { return impl_->context; }

void GrpcServer::SetInflightLimits(const InflightLimits& limits) {
  impl_->context.inflight->SetLimits(limits);
  impl_->quota.Resize(static_cast<size_t>(limits.Resolved().max_bytes));
}

void GrpcServer::AllowModelControl(ModelManager& manager) { impl_->context.manager = &manager; }

void GrpcServer::SetServing(bool serving) {
  MutexLock lock(impl_->health_mutex);
  if (impl_->serves && !serving) impl_->Leave();  // it begins to end
  impl_->serves = serving;
  impl_->TellServing();
}

void GrpcServer::SetModelsReady(bool ready) {
  MutexLock lock(impl_->health_mutex);
  impl_->models_ready = ready;
  impl_->TellServing();
}

void GrpcServer::SetModelServing(const std::string& model, bool serving) {
  MutexLock lock(impl_->health_mutex);
  impl_->Tell(std::string(kOfModels) + model, serving && !impl_->context.leaving);
}

void GrpcServer::SetLive(bool live) {
  MutexLock lock(impl_->health_mutex);
  impl_->Tell("live", live);
}

void GrpcServer::Drain() {
  SetServing(false);
  {
    MutexLock lock(impl_->health_mutex);
    impl_->context.draining = true;
    impl_->Leave();
  }
  impl_->drained_under_load = impl_->context.inflight->requests() > 0;
  impl_->context.streams.DrainAll();
}

void GrpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (impl_->tick == nullptr) return;  // it was shut down before
  if (impl_->drained_under_load) AwaitQuiet(*impl_->context.inflight, deadline);
  impl_->tick.reset();
  impl_->look_up.reset();
  impl_->calls.reset();
  impl_->memory.reset();
  AwaitIdle(*impl_->context.inflight, deadline);
  // Calls that are still open wait for no result: they are watches of health, which have no end of
  // their own.
  constexpr std::chrono::milliseconds kLast(500);
  const auto now = std::chrono::system_clock::now();
  const auto end = std::min<std::chrono::system_clock::time_point>(deadline, now + kLast);
  const HangUpLater hang_up(std::max(end - now, {}) + kLast, impl_->port, impl_->unix_socket);
  impl_->server->Shutdown(end);
  impl_->server->Wait();
}

}  // namespace linserve
