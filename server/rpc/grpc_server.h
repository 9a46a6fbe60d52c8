#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "repository/model_manager.h"
#include "repository/repository.h"
#include "rpc/grpc_options.h"
#include "serving/inflight.h"
#include "telemetry/metrics.h"

namespace linserve {

struct ServiceContext;

// Runs the gRPC side of a server: linserve.v1.EmbeddingService, inference.GRPCInferenceService,
// grpc.health.v1.Health (for "", the services' names, linserve/MODEL and live) and reflection. It
// starts NOT_SERVING, but live.
class GrpcServer {
 public:
  // Starts the server. `repository` and `metrics` must outlive it. Returns UNAVAILABLE if the
  // address is taken.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcOptions& options,
                                                           ModelRepository& repository,
                                                           Metrics& metrics);

  // Cancels the calls that are left.
  ~GrpcServer();

  int port() const;

  // Returns whether the server still takes connections: if not, only a new process will.
  bool Accepts();

  // Returns what its services share, for another way to reach them.
  ServiceContext& context();

  // Lets callers load and unload models from now on. `manager` must outlive their calls.
  void AllowModelControl(ModelManager& manager);

  // Bounds what may be in flight from now on.
  void SetInflightLimits(const InflightLimits& limits);

  // Sets what health checks say of the whole server, which serves while all of its models can; and
  // of one model.
  void SetServing(bool serving);
  void SetModelsReady(bool ready);
  void SetModelServing(const std::string& model, bool serving);

  // Sets what health checks say of "live": whether this process need not be replaced.
  void SetLive(bool live);

  // Ends streams as they fall idle, and turns health to NOT_SERVING. The engines refuse new
  // requests.
  void Drain();

  // Waits for open calls until `deadline`, then cancels them. If there were requests when the drain
  // began, refuses new ones for a moment more, so that their callers are told UNAVAILABLE.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  struct Impl;
  explicit GrpcServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
