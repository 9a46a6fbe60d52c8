#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "batching/request_queue.h"
#include "engine/model.h"
#include "telemetry/metrics.h"

namespace linserve {

// Says that a sequence's deadline passed while it was computed.
absl::Status DeadlinePassed();

// Hands each sequence of a batch what became of it, exactly once.
class BatchDelivery {
 public:
  // All arguments must outlive the delivery.
  BatchDelivery(Model& model, ModelMetrics& metrics, Clock& clock)
      : model_(model), metrics_(metrics), clock_(clock) {}

  // Delivers a result each. `departed` says whose callers left while they were computed. Where the
  // sequences are chunks of sessions, it must be called on the thread of the model, which saves
  // them.
  void Results(ClosedBatch& closed, const std::vector<bool>& departed, const Timing& timing,
               Forward::Results outputs);

  // Delivers the status to all. Of CANCELLED each is told whether its deadline passed or its caller
  // left.
  void Failure(ClosedBatch& closed, const absl::Status& status);

  // Logs what has failed since this was last called, in one line for each cause: a batch may have
  // failed in many parts.
  void LogFailures();

  // Answers a sequence that nobody waits for any more.
  void Departed(Pending& pending);

 private:
  struct Failed {
    std::set<std::string> requests;
    int64_t sequences = 0;
  };

  absl::Status AddSession(const Item& item, ItemResult& result);

  Model& model_;
  ModelMetrics& metrics_;
  Clock& clock_;
  std::map<std::string, Failed> failed_;  // by what was said of them, of what is not logged yet
};

}  // namespace linserve
