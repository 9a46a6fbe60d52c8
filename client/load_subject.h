#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/embedding_client.h"
#include "client/load_generator.h"
#include "client/load_inputs.h"
#include "client/load_sweep.h"
#include "client/load_trace.h"
#include "core/lengths.h"

namespace linserve {

// A server, by one of the protocols, that load is put on.
class LoadSubject {
 public:
  // Connects all connections, so that the load does not begin with that. NOT_FOUND: it has no such
  // model; other codes: it does not answer.
  static absl::StatusOr<LoadSubject> Connect(std::string name, const ClientOptions& options,
                                             size_t connections, const std::string& model,
                                             int64_t version);

  const std::string& name() const { return name_; }
  const ModelDescription& model() const { return model_; }

  // What is asked of it: requests in turn, or those of a trace. Codes of MakeLoadCalls().
  absl::Status Prepare(const LengthDistribution& lengths, const LoadInputOptions& input);
  absl::Status Prepare(const std::vector<TracedRequest>& trace, const LoadInputOptions& input);

  // One measurement more; `load` is what it is called in the report. Shows its progress.
  void Measure(double load, const LoadOptions& options, const std::atomic<bool>& stop);

  const std::vector<SweepStep>& steps() const { return steps_; }

 private:
  LoadSubject(std::string name, Protocol protocol) : name_(std::move(name)), protocol_(protocol) {}

  std::string name_;
  Protocol protocol_;
  std::vector<std::unique_ptr<EmbeddingClient>> clients_;
  ModelDescription model_;
  std::vector<PreparedCall> calls_;
  std::vector<size_t> order_;  // of the calls; empty: in turn
  std::vector<SweepStep> steps_;
};

}  // namespace linserve
