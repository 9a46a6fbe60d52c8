#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "batching/padder.h"
#include "batching/request_queue.h"
#include "core/threads/mutex.h"
#include "core/threads/periodic.h"
#include "engine/answers.h"
#include "engine/busy_time.h"
#include "engine/model.h"
#include "engine/result_cache.h"
#include "engine/sessions/session_table.h"
#include "engine/speed_estimate.h"
#include "telemetry/metrics.h"
#include "telemetry/trace/trace_context.h"

namespace linserve {

struct EngineOptions {
  std::string name{};              // name of its threads, in traces
  std::optional<Padding> padding;  // nullopt: the model's fastest
  std::vector<int64_t> buckets;    // for Padding::kBucket; empty: powers of two and their halves
  BatchPolicy policy;
  QueueLimits limits;
  SessionLimits sessions;
  int64_t replicas = 1;     // each with a thread of its own
  bool shared = false;      // replicas share one copy of the weights, and the processors, but that
  int64_t apart = 1;        // so many can compute with all the threads that they may have
  int64_t cache_bytes = 0;  // bytes of results kept, to compute identical sequences once; 0: none
  bool warmup = true;       // run the shortest and the longest sequence before being ready
  // Called on a worker's thread when ready() has changed.
  std::function<void()> on_ready_change{};
};

// Holds sequences of one caller, answered one by one through `sink`.
struct Request {
  std::string id;
  TraceContext trace{};
  std::string caller{};                     // who shares the workers fairly with the others
  std::vector<absl::StatusOr<Item>> items;  // a status: a sequence that was faulty on the wire
  TimePoint deadline = TimePoint::max();
  Priority priority = Priority::kNormal;
  std::shared_ptr<ResultSink> sink;
};

// Serves one version of one model: it is the model's queue and the workers that empty it. Submit()
// may be called from any thread. Every sequence of an accepted request is delivered exactly once.
class Engine {
 public:
  // Starts the workers and returns when every replica is loaded and warm, or with the first
  // error. `clock` must outlive the engine.
  static absl::StatusOr<std::unique_ptr<Engine>> Start(const EngineOptions& options,
                                                       const ModelFactory& factory,
                                                       ModelMetrics& metrics,
                                                       Clock& clock = SteadyClock());

  // Drains without a time limit.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes a request; never blocks. OK means that each of its sequences will be delivered, faulty
  // ones with INVALID_ARGUMENT. RESOURCE_EXHAUSTED and UNAVAILABLE mean that nothing of it was
  // taken.
  absl::Status Submit(Request& request);

  // Refuses new requests from now on; what was accepted is still answered.
  void StopAccepting();

  // Refuses new requests and waits until what was accepted is answered. At `deadline`, what still
  // waits for a worker and what goes on by itself is answered with UNAVAILABLE; returns how many
  // sequences that were. What is being computed then is given up where a pass next looks up.
  size_t Drain(TimePoint deadline);

  // Is false while every replica's device is lost. Replicas are loaded again until that succeeds.
  bool ready() const { return replicas_lost_ < options_.replicas; }
  // Is true if the engine is not ready, and loading again has failed several times: only a new
  // process will help.
  bool stuck() const { return !ready() && failed_rebuilds_ >= kRebuildsUntilStuck; }

  // Says that what is on its way here takes so much time more, or less again: see RequestQueue.
  void Expect(std::chrono::nanoseconds change) { queue_.Expect(change); }

  // Estimates from the measured speed how long a request that arrives now will wait.
  std::chrono::nanoseconds DelayEstimate() const;

  // Bounds what may wait from now on.
  void SetQueueLimits(const QueueLimits& limits) { queue_.SetLimits(limits); }
  QueueLimits queue_limits() const { return queue_.limits(); }

  // Says how long a caller that was refused should wait before it tries again.
  std::chrono::milliseconds RetryDelay() const { return queue_.RetryDelay(); }

  // Says how long the replicas have computed, added up, of apart() at most at a time.
  std::chrono::nanoseconds ComputingTime() const { return busy_.Total(clock_.Now()); }

  const ModelInfo& info() const { return info_; }
  const EngineOptions& options() const { return options_; }
  // Returns how many replicas compute without taking each other's processors.
  int64_t apart() const { return options_.shared ? options_.apart : options_.replicas; }
  int64_t weight_bytes() const { return (options_.shared ? 1 : options_.replicas) * info_.bytes; }
  Padding padding() const { return padder_->padding(); }
  ModelMetrics& metrics() const { return *metrics_; }

 private:
  class Startup;
  class Busy;
  struct Intake;

  Engine(const EngineOptions& options, ModelMetrics& metrics, Clock& clock);
  Padder PadderFor(const ModelInfo& info) const;
  void KeepSessions();
  void Work(const ModelFactory& factory, int64_t replica, Startup& startup);
  static constexpr int64_t kRebuildsUntilStuck = 3;

  void ServeGuarded(Model& model);
  void Serve(Model& model);
  bool HasOwnWeights(int64_t replica) const { return !options_.shared || replica == 0; }
  void Unload(const Model& model, int64_t replica);
  absl::StatusOr<std::unique_ptr<Model>> Rebuild(const ModelFactory& factory, int64_t replica);
  void SetLost(int64_t change);
  bool WaitForClose(std::chrono::nanoseconds most);
  absl::Status Check(absl::StatusOr<Item>& item) const;
  Intake Sort(Request& request, const std::shared_ptr<Answers>& answers) const;
  absl::Status Enqueue(std::vector<Pending>& accepted);
  bool LeaveWhatIsCached(ClosedBatch& batch);
  std::optional<ClosedBatch> PopShort(int64_t most_rows);
  absl::Status EnqueueChunk(Pending& chunk, bool next);
  Pending Prepare(const Request& request, const Item& item, size_t index,
                  const std::shared_ptr<const RequestOrigin>& origin,
                  const std::shared_ptr<ResultSink>& sink) const;
  // Sets the fields that follow from how the padder would lay the item out.
  void LayOut(Pending& pending) const;
  absl::StatusOr<std::unique_ptr<Model>> TryLoad(const ModelFactory& factory, int64_t replica);
  absl::StatusOr<std::unique_ptr<Model>> Load(const ModelFactory& factory, int64_t replica);

  const EngineOptions options_;
  const std::shared_ptr<ModelMetrics> metrics_;
  Clock& clock_;
  ModelInfo info_;
  std::unique_ptr<Padder> padder_;
  SpeedEstimate speed_;
  BusyTime busy_;
  OpenRequests open_;
  RequestQueue queue_;
  std::shared_ptr<ResultCache> cache_;      // null: there is none
  std::shared_ptr<SessionTable> sessions_;  // null: the model has none
  std::unique_ptr<Periodic> expiry_;        // lets idle sessions expire

  Mutex mutex_;
  CondVar finished_;
  CondVar closing_;
  int64_t working_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int64_t> replicas_lost_ = 0;
  std::atomic<int64_t> failed_rebuilds_ = 0;  // since a rebuild last succeeded
  std::vector<std::thread> workers_;
};

}  // namespace linserve
