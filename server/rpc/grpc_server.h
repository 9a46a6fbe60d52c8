#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "access/tls.h"
#include "batching/inflight.h"
#include "engine/model_manager.h"
#include "engine/repository.h"
#include "telemetry/metrics.h"

namespace linserve {

struct GrpcOptions {
  std::string host = "127.0.0.1";
  int port = 8500;            // 0: any free one
  std::string unix_socket{};  // path of a further listener, for callers on this machine
  std::chrono::milliseconds max_connection_age{0};  // give or take a tenth; 0: without an end
  int64_t max_message_bytes = 128 << 20;
  int64_t max_sequences_per_request = 16384;
  int64_t max_text_bytes = 1 << 20;
  int64_t max_requests_per_stream = 256;
  // Between two parts of a sequence.
  std::chrono::milliseconds max_upload_pause{60000};
  int64_t chunk_bytes = 1 << 20;
  std::string version{};      // of the server, as its metadata says it
  TlsFiles tls{};             // of the address; none: plain text
  std::string tokens_file{};  // who may call; empty: anybody
  int64_t max_streams_per_connection = 1024;
  InflightLimits inflight{};
};

struct ServiceContext;

// The gRPC side of a server: linserve.v1.EmbeddingService, inference.GRPCInferenceService,
// grpc.health.v1.Health (for "", the services' names, linserve/MODEL and live) and reflection.
// Starts NOT_SERVING, but live.
class GrpcServer {
 public:
  // `repository` and `metrics` must outlive the server. UNAVAILABLE if the address is taken.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcOptions& options,
                                                           ModelRepository& repository,
                                                           Metrics& metrics);

  // Cancels what is left.
  ~GrpcServer();

  int port() const;

  // Whether it still takes connections: if not, only a new process will.
  bool Accepts();

  // What its services share, for another way to reach them.
  ServiceContext& context();

  // From now on callers may load and unload models. `manager` must outlive their calls.
  void AllowModelControl(ModelManager& manager);

  // What health checks say of the whole server, and of one model.
  void SetServing(bool serving);
  void SetModelServing(const std::string& model, bool serving);

  // What they say of "live": whether this process need not be replaced.
  void SetLive(bool live);

  // Ends streams as they fall idle; health turns to NOT_SERVING. The engines refuse new requests.
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
