#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/batch.h"
#include "telemetry/model_statistics.h"

namespace linserve {

enum class RejectReason : uint8_t { kQueue, kBytes, kInvalid, kDraining, kDeadline, kSessions };
enum class AbandonStage : uint8_t { kQueue, kBatch, kStream };
enum class ComputePhase : uint8_t { kCopyIn, kForward, kCopyOut };
enum class ModelState : uint8_t { kLoading, kReady, kDraining, kUnavailable };
enum class CacheOutcome : uint8_t { kHit, kJoined, kMiss };
enum class SessionEnd : uint8_t { kEnded, kRestarted, kEvicted, kExpired, kLost };
enum class SplitReason : uint8_t { kMemory, kFault };
// Why a request was refused before any model saw it.
enum class Refusal : uint8_t { kUnauthenticated, kForbidden, kRate, kInflight };
enum class Direction : uint8_t { kReceived, kSent };

std::string_view Name(ModelState state);  // "LOADING", "READY", "DRAINING", "UNAVAILABLE"

// Every metric that linserve exports, one named method an event. All methods are thread-safe and
// cannot fail; labels are resolved when a handle is made, never per event. README.md lists the
// exported names, and a test compares that list with what is scraped.

// What happens to the sequences of one model version.
class ModelMetrics {
 public:
  struct Handles;
  explicit ModelMetrics(std::unique_ptr<Handles> handles);
  ~ModelMetrics();

  void SetState(ModelState state);
  void LoadEnded(bool ok);  // once for each attempt
  void SetLoaded(std::chrono::nanoseconds load, std::chrono::nanoseconds warmup,
                 std::string_view device, int64_t bytes);

  // The queue as it stands after a change.
  void SetQueue(int64_t requests, int64_t sequences, int64_t tokens, int64_t bytes);
  // The wait of a request that arrives now: queued tokens over measured tokens per second.
  void SetQueueDelayEstimate(std::chrono::nanoseconds estimate);

  // Once a text, from its arrival until it was tokens.
  void TokenizeTime(std::chrono::nanoseconds time);
  void Accepted(int64_t sequence_length);  // once a sequence
  void Rejected(RejectReason reason);      // once a request
  void Abandoned(AbandonStage stage);      // once a sequence
  void Displaced();                        // once a sequence
  void Wasted(int64_t tokens);             // of a sequence that was computed for nobody
  // Once a sequence that was accepted; `code` is a gRPC status code, 0 to 16.
  void Delivered(int code);

  void CacheLookup(CacheOutcome outcome);  // once a sequence, where there is a cache
  void SetCacheBytes(int64_t bytes);

  void SetSessions(int64_t count, int64_t bytes);  // that are kept
  void SessionOpened(bool restored);
  void SessionClosed(SessionEnd reason);
  void Generated();  // once a token

  void BatchClosed(const Batch& batch, CloseReason reason);
  void BatchSplit(SplitReason reason);
  void SetReplicas(int64_t count);
  void SetReplicasLost(int64_t count);                                  // of these
  void QueueTime(std::chrono::nanoseconds time);                        // once a sequence
  void BatchFormTime(std::chrono::nanoseconds time);                    // once a batch
  void ComputeTime(ComputePhase phase, std::chrono::nanoseconds time);  // once a batch and phase

  ModelStatistics& statistics() { return statistics_; }

 private:
  std::unique_ptr<Handles> handles_;
  ModelStatistics statistics_;
};

// What happens to the calls of one RPC ("Embed", "EmbedStream", ...).
class RpcMetrics {
 public:
  struct Handles;
  RpcMetrics(std::string rpc, std::unique_ptr<Handles> handles);
  ~RpcMetrics();

  const std::string& rpc() const { return rpc_; }  // its name

  void Started();  // a request: the whole call, or one request of a stream
  // `code` is a gRPC status code, 0 to 16. Times are kept of those that were OK, lest
  // refusals, which take none, make a percentile better.
  void Finished(int code, std::chrono::nanoseconds duration);
  void FirstResponse(std::chrono::nanoseconds since_start);
  void Sent(std::chrono::nanoseconds time);  // one message, from the write's start to its end
  void Message(Direction direction, size_t bytes);
  void StreamOpened();
  void StreamClosed();

 private:
  const std::string rpc_;
  std::unique_ptr<Handles> handles_;
};

// Bytes of a device's memory, not the CPU's.
struct DeviceUse {
  int64_t used = 0;      // by tensors
  int64_t reserved = 0;  // by the pool that they come from
  int64_t limit = 0;     // of the pool
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

  // The same handles for the same arguments.
  ModelMetrics& ForModel(const std::string& name, int64_t version);
  RpcMetrics& ForRpc(const std::string& rpc);

  void Refused(Refusal reason);
  void ResetFlood();  // once a connection that was ended for it
  // Of requests, and of the results that they are to have, from arrival to the last answer.
  void SetInflightBytes(int64_t bytes);
  void SetMaxInflightBytes(int64_t bytes);

  // A device that models compute on: what `use` says is asked at each scrape.
  void AddDevice(const std::string& device, std::function<DeviceUse()> use);
  // Models compute on the CPU, since no GPU could be used: "no_plugin", say. Empty: they do not.
  void SetDeviceFallback(const std::string& reason);

  // All metrics in the Prometheus text format 0.0.4; process figures are read at this moment.
  std::string Scrape() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
