#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/embedding_client.h"
#include "client/load/load_generator.h"
#include "client/load/load_inputs.h"
#include "client/load/load_sweep.h"
#include "client/load/load_trace.h"
#include "core/workload/lengths.h"

namespace linserve {

// Represents a server, spoken to by one of the protocols, that load is put on.
class LoadSubject {
 public:
  // Connects all connections, so that the load does not begin with that. NOT_FOUND means that the
  // server has no such model; other codes mean that it does not answer.
  static absl::StatusOr<LoadSubject> Connect(std::string name, const ClientOptions& options,
                                             size_t connections, const std::string& model,
                                             int64_t version);

  const std::string& name() const { return name_; }
  const ModelDescription& model() const { return model_; }

  // Makes what is asked of the server: requests in turn, or those of a trace. The codes are those
  // of MakeLoadCalls().
  absl::Status Prepare(const LengthDistribution& lengths, const LoadInputOptions& input);
  absl::Status Prepare(const std::vector<TracedRequest>& trace, const LoadInputOptions& input);

  // Measures how many requests a second the client can send at all, and be answered. It sends them
  // to a server beside it that does nothing but give the first request's answer; `options` says how
  // many are in flight. REQUIRES: Prepare() was called. The codes are those of RecordAnswer();
  // INTERNAL means that there is no such server.
  absl::Status MeasureCeiling(const LoadOptions& options, const std::atomic<bool>& stop);

  // Makes one measurement more, and shows its progress; `load` is what it is called in the report.
  // One that was interrupted before it measured anything is left out where there are others.
  void Measure(double load, const LoadOptions& options, const std::atomic<bool>& stop);

  const std::vector<SweepStep>& steps() const { return steps_; }

 private:
  using Clients = std::vector<std::unique_ptr<EmbeddingClient>>;

  LoadSubject(std::string name, ClientOptions options)
      : name_(std::move(name)), options_(std::move(options)) {}

  LoadReport Run(const Clients& clients, const LoadOptions& options, const std::atomic<bool>& stop);

  std::string name_;
  ClientOptions options_;
  Clients clients_;
  ModelDescription model_;
  std::vector<PreparedCall> calls_;
  std::vector<size_t> order_;  // order in which `calls_` are sent; empty: in turn
  std::optional<EmbedCall> first_;
  double ceiling_ = 0;  // requests a second; 0: not measured
  std::vector<SweepStep> steps_;
};

}  // namespace linserve
