#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/sequence/batch.h"
#include "telemetry/exemplars.h"
#include "telemetry/model_statistics.h"

namespace prometheus {
struct MetricFamily;
}

namespace linserve {

enum class RejectReason : uint8_t { kQueue, kBytes, kInvalid, kDraining, kDeadline, kSessions };
enum class AbandonStage : uint8_t { kQueue, kBatch, kStream };
enum class ComputePhase : uint8_t { kCopyIn, kForward, kCopyOut };
enum class ModelState : uint8_t { kLoading, kReady, kDraining, kUnavailable };
enum class CacheOutcome : uint8_t { kHit, kJoined, kMiss };
enum class SessionEnd : uint8_t {
  kEnded,
  kRestarted,
  kFailed,
  kEvicted,
  kExpired,
  kLost,
  kUnloaded
};
enum class SplitReason : uint8_t { kMemory, kFault };
// Says why a request was refused before any model saw it.
enum class Refusal : uint8_t { kUnauthenticated, kForbidden, kRate, kInflight, kCallerInflight };
// Says what memory is planned for.
enum class MemoryPart : uint8_t { kProgram, kWeights, kInflight, kSessions, kCache, kScratch };
enum class Direction : uint8_t { kReceived, kSent };
// Says what of the configuration could not be read again, so that what was read before goes on.
enum class Reload : uint8_t { kCertificate, kTokens, kModels, kConfig };
// Says what became of a span that was to be sent: the collector has it, there was no room for it,
// or the collector did not take it.
enum class SpanEnd : uint8_t { kSent, kDropped, kFailed };
// The Prometheus text format 0.0.4, or OpenMetrics 1.0.0, which has exemplars, too.
enum class MetricsFormat : uint8_t { kText, kOpenMetrics };

std::string_view Name(ModelState state);  // "LOADING", "READY", "DRAINING", "UNAVAILABLE"

// This header has every metric that linserve exports, one named method an event. All methods are
// thread-safe and cannot fail; labels are resolved when a handle is made, never per event.
// README.md here lists the exported names, and a test compares that list with what is scraped.

// Holds what waits in a queue.
struct QueueState {
  int64_t requests = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t bytes = 0;
  // Wait of a request that arrives now: queued tokens over measured tokens per second.
  std::chrono::nanoseconds delay{0};
};

// Counts what happens to the sequences of one model version.
class ModelMetrics : public std::enable_shared_from_this<ModelMetrics> {
 public:
  struct Handles;
  explicit ModelMetrics(std::unique_ptr<Handles> handles);
  ~ModelMetrics();

  // Sets the state; nullopt: nobody wants the version any more, so that it is in none.
  void SetState(std::optional<ModelState> state);
  void LoadEnded(bool ok);  // once for each attempt
  void SetLoaded(std::chrono::nanoseconds load, std::chrono::nanoseconds warmup,
                 std::string_view device, int64_t bytes);
  void AddBytes(std::string_view device, int64_t change);  // to those of all copies
  // Returns all that is counted here.
  std::vector<prometheus::MetricFamily> Collect() const;

  // Says that a queue has changed. While the model is loaded again there are two, which are added.
  void QueueChanged(const QueueState& before, const QueueState& after);

  // Called once a text, with the time from its arrival until it was tokens.
  void TokenizeTime(std::chrono::nanoseconds time);
  // Called with what is offered to the queue: once a request, whether it is queued or refused.
  void Arrived(int64_t tokens);
  void Accepted(int64_t sequence_length);  // once a sequence
  void Rejected(RejectReason reason);      // once a request
  void Abandoned(AbandonStage stage);      // once a sequence
  void Displaced();                        // once a sequence
  void Wasted(int64_t tokens);             // tokens of a sequence that was computed for nobody
  // Called once for each sequence that was accepted; `code` is a gRPC status code, 0 to 16.
  void Delivered(int code);

  void CacheLookup(CacheOutcome outcome);  // once a sequence, where there is a cache
  void AddCacheBytes(int64_t change);

  void AddSessions(int64_t change, int64_t bytes);  // to those that are kept
  void SessionOpened(bool restored);
  void SessionClosed(SessionEnd reason);
  void Generated();  // once a token

  void BatchClosed(const Batch& batch, CloseReason reason);
  void BatchSplit(SplitReason reason);
  void AddReplicas(int64_t change);
  void AddReplicasLost(int64_t change);               // to those whose device is lost
  void AddBusyTime(std::chrono::nanoseconds time);    // the mean of those that compute apart
  void QueueTime(std::chrono::nanoseconds time);      // once a sequence
  void BatchFormTime(std::chrono::nanoseconds time);  // once a batch
  void ComputeTime(ComputePhase phase, std::chrono::nanoseconds time);  // once a batch and phase

  ModelStatistics& statistics() { return statistics_; }

 private:
  std::unique_ptr<Handles> handles_;
  ModelStatistics statistics_;
};

// Counts what happens to the calls of one RPC ("Embed", "EmbedStream", ...).
class RpcMetrics {
 public:
  struct Handles;
  RpcMetrics(std::string rpc, std::unique_ptr<Handles> handles);
  ~RpcMetrics();

  const std::string& rpc() const { return rpc_; }  // its name

  void Started();  // once a request: the whole call, or one request of a stream
  // Called once a request ends; `code` is a gRPC status code, 0 to 16. Only the times of requests
  // that were OK are kept, lest refusals, which take no time, make a percentile better. `model` is
  // one that is served, or "", and `trace_id` that of a trace that somebody keeps, or "".
  void Finished(int code, std::chrono::nanoseconds duration, const std::string& model = "",
                const std::string& trace_id = "");
  void FirstResponse(std::chrono::nanoseconds since_start);
  void Sent(std::chrono::nanoseconds time);  // once a message, from the write's start to its end
  void Message(Direction direction, size_t bytes);
  void StreamOpened();
  void StreamClosed();

  // Adds the last traced requests to those of other calls.
  void AddExemplars(Exemplars& exemplars) const;

 private:
  const std::string rpc_;
  std::unique_ptr<Handles> handles_;
};

// Holds bytes of a device's memory, not the CPU's.
struct DeviceUse {
  int64_t used = 0;      // used by tensors
  int64_t reserved = 0;  // held by the pool that the tensors come from
  int64_t limit = 0;     // bound of the pool
};

struct BuildInfo {
  std::string version;
  std::string commit;
  std::string torch;
};

// Owns the registry and every handle; handles live as long as it does.
class Metrics {
 public:
  explicit Metrics(const BuildInfo& build);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // ForModel() and ForRpc() return the same handles for the same arguments.
  ModelMetrics& ForModel(const std::string& name, int64_t version) {
    return *ShareModel(name, version);
  }
  RpcMetrics& ForRpc(const std::string& rpc);

  // Returns the handle for as long as it is needed, though the model may be forgotten meanwhile:
  // then nothing is shown of it any more.
  std::shared_ptr<ModelMetrics> ShareModel(const std::string& name, int64_t version);
  void ForgetModel(const std::string& name, int64_t version);

  // Counts tokens that were computed for a caller with a token of this name.
  void Computed(const std::string& caller, int64_t tokens);

  void HttpReplied(int status);
  void Refused(Refusal reason);
  void ReloadFailed(Reload what);  // once each time
  void SetCertificateExpiry(std::chrono::system_clock::time_point expiry);
  void SpansEnded(SpanEnd how, size_t count);
  void ResetFloods(int count);   // connections that were ended for resets, or for too many calls
  void MemoryFloods(int count);  // connections that were ended for the memory that they take
  // Sets the bytes of requests, and of the results that they are to have, from arrival to the last
  // answer.
  void SetInflightBytes(int64_t bytes);
  void SetMaxInflightBytes(int64_t bytes);
  // Sets what is planned for; all parts together are the memory limit.
  void SetMemoryPlan(MemoryPart part, int64_t bytes);

  // Adds a device that models compute on; `use` is called at each scrape.
  void AddDevice(const std::string& device, std::function<DeviceUse()> use);
  // Says why models compute on the CPU, since no GPU could be used: "no_plugin", say. Empty means
  // that they do not.
  void SetDeviceFallback(const std::string& reason);

  // Returns all metrics; process figures are read at this moment.
  std::string Scrape(MetricsFormat format = MetricsFormat::kText) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
