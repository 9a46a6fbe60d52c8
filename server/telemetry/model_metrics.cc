#include <algorithm>
#include <iterator>
#include <utility>

#include "core/threads/mutex.h"
#include "telemetry/instruments.h"

namespace linserve {
namespace {

// These tables name the values of enumerations in their order.
constexpr std::array<std::string_view, 6> kRejectReasons = {"queue",    "bytes",    "invalid",
                                                            "draining", "deadline", "sessions"};
constexpr std::array<std::string_view, 3> kAbandonStages = {"queue", "batch", "stream"};
constexpr std::array<std::string_view, 2> kSplitReasons = {"memory", "fault"};
constexpr std::array<std::string_view, 3> kPhases = {"copy_in", "forward", "copy_out"};
constexpr std::array<std::string_view, 4> kStates = {"LOADING", "READY", "DRAINING", "UNAVAILABLE"};
constexpr std::array<std::string_view, 3> kCacheOutcomes = {"hit", "joined", "miss"};
constexpr std::array<std::string_view, 2> kSessionOrigins = {"start", "restore"};
constexpr std::array<std::string_view, 7> kSessionEnds = {
    "ended", "restarted", "failed", "evicted", "expired", "lost", "unloaded"};
constexpr std::array<std::string_view, 2> kLoadResults = {"ok", "failed"};

template <typename... Enums>
std::array<std::string_view, sizeof...(Enums)> Names(Enums... values) {
  return {Name(values)...};
}

}  // namespace

std::string_view Name(ModelState state) { return kStates[static_cast<size_t>(state)]; }

struct ModelMetrics::Handles {
  Handles(const std::string& name, int64_t version)
      : labels{{"model", name}, {"version", std::to_string(version)}}, make(registry, labels) {}

  prometheus::Registry registry;
  const prometheus::Labels labels;
  Instruments make;
  Mutex state_mutex;
  Mutex delay_mutex;
  std::chrono::nanoseconds delay ABSL_GUARDED_BY(delay_mutex){0};

  std::array<prometheus::Gauge*, 4> state =
      make.Gauges("linserve_model_state", "1 for the state that the model is in, 0 for the others.",
                  "state", kStates);
  prometheus::Gauge& load =
      make.Gauge("linserve_model_load_seconds", "Time that loading the model took.");
  std::array<prometheus::Counter*, 2> loads =
      make.Counters("linserve_model_loads_total", "Attempts to load the model, by their result.",
                    "result", kLoadResults);
  prometheus::Gauge& warmup =
      make.Gauge("linserve_model_warmup_seconds", "Time that warming the model up took.");

  prometheus::Gauge& queue_requests =
      make.Gauge("linserve_queue_requests", "Requests with sequences in the queue.");
  prometheus::Gauge& queue_sequences =
      make.Gauge("linserve_queue_sequences", "Sequences in the queue.");
  prometheus::Gauge& queue_tokens = make.Gauge("linserve_queue_tokens", "Tokens in the queue.");
  prometheus::Gauge& queue_bytes =
      make.Gauge("linserve_queue_bytes", "Bytes of the inputs in the queue.");
  prometheus::Gauge& queue_delay =
      make.Gauge("linserve_queue_delay_estimate_seconds",
                 "Wait of a request that arrives now: queued tokens over measured tokens/s.");

  prometheus::Counter& arrived_tokens = make.Counter(
      "linserve_arrived_tokens_total", "Tokens that were offered to the queue, taken or refused.");
  std::array<prometheus::Counter*, 6> rejected = make.Counters(
      "linserve_rejected_total", "Requests that were not admitted.", "reason", kRejectReasons);
  std::array<prometheus::Counter*, 3> abandoned =
      make.Counters("linserve_abandoned_total",
                    "Sequences that nobody waited for any more, by where they were dropped.",
                    "stage", kAbandonStages);
  prometheus::Counter& wasted =
      make.Counter("linserve_wasted_tokens_total",
                   "Tokens of sequences for which nobody waited any more when they were computed.");
  prometheus::Counter& displaced =
      make.Counter("linserve_displaced_total",
                   "Sequences that left a full queue for others that were due before them.");
  std::array<prometheus::Counter*, kCodes.size()> results =
      make.Counters("linserve_results_total",
                    "Accepted sequences that were answered, by the status code.", "code", kCodes);
  std::array<prometheus::Counter*, 2> splits = make.Counters(
      "linserve_batch_splits_total",
      "Batches that failed and were computed again in halves, by why.", "reason", kSplitReasons);
  prometheus::Gauge& replicas =
      make.Gauge("linserve_replicas", "Batches of the model that are computed at a time, at most.");
  prometheus::Counter& busy = make.Counter(
      "linserve_busy_seconds_total",
      "Time in which replicas computed: any of those that share their processors, and the "
      "mean of those that do not.");
  prometheus::Gauge& replicas_lost = make.Gauge(
      "linserve_replicas_lost", "Replicas whose device failed, and which are loaded again.");

  std::array<prometheus::Counter*, 3> cache_lookups =
      make.Counters("linserve_cache_lookups_total",
                    "Sequences that were looked up in the cache of results, by what was found.",
                    "outcome", kCacheOutcomes);
  prometheus::Gauge& cache_bytes =
      make.Gauge("linserve_cache_bytes", "Bytes that the cache of results holds.");

  prometheus::Gauge& sessions = make.Gauge("linserve_sessions", "Sessions that are kept.");
  prometheus::Gauge& session_bytes =
      make.Gauge("linserve_session_state_bytes", "Bytes of the states of all sessions.");
  std::array<prometheus::Counter*, 2> sessions_opened =
      make.Counters("linserve_sessions_opened_total",
                    "Sessions that were begun, at their first row or from a saved state.", "from",
                    kSessionOrigins);
  std::array<prometheus::Counter*, 7> sessions_closed = make.Counters(
      "linserve_sessions_closed_total",
      "Sessions that are kept no longer: ended or started again by their callers, failed in their "
      "first chunk, evicted for others, expired, lost with their device, or unloaded with their "
      "model version.",
      "reason", kSessionEnds);

  prometheus::Counter& generated_tokens =
      make.Counter("linserve_generated_tokens_total", "Tokens that followed prompts.");

  prometheus::Counter& sequences =
      make.Counter("linserve_sequences_total", "Sequences in closed batches.");
  prometheus::Counter& tokens = make.Counter("linserve_tokens_total", "Real tokens in batches.");
  std::array<prometheus::Counter*, 4> padded_tokens =
      make.Counters("linserve_padded_tokens_total", "Rows computed for padding.", "mode",
                    Names(Padding::kPacked, Padding::kBucket, Padding::kFixed, Padding::kZeros));
  std::array<prometheus::Counter*, 5> batches =
      make.Counters("linserve_batches_total", "Batches, by why they were closed.", "reason",
                    Names(CloseReason::kFull, CloseReason::kDelay, CloseReason::kIdle,
                          CloseReason::kLength, CloseReason::kDrain));
  prometheus::Histogram& batch_sequences = make.Histogram(
      "linserve_batch_sequences", "Sequences of a batch.", GeometricBuckets(1, 2, 1 << 12));
  prometheus::Histogram& batch_tokens =
      make.Histogram("linserve_batch_tokens", "Rows computed for a batch, padding included.",
                     GeometricBuckets(1, 2, 1 << 22));
  prometheus::Histogram& sequence_length =
      make.Histogram("linserve_sequence_length", "Length of an accepted sequence.",
                     GeometricBuckets(1, 2, 1 << 20));

  prometheus::Histogram& tokenize = make.Histogram(
      "linserve_tokenize_seconds",
      "From a text's arrival until it was tokens, waiting for its turn included.", TimeBuckets());
  prometheus::Histogram& queue_duration =
      make.Histogram("linserve_queue_duration_seconds",
                     "From a sequence's acceptance until its batch was closed.", TimeBuckets());
  prometheus::Histogram& batch_form_duration =
      make.Histogram("linserve_batch_form_duration_seconds",
                     "Time to lay out a closed batch: padding, packing.", TimeBuckets());
  std::array<prometheus::Histogram*, 3> compute_duration =
      make.Histograms("linserve_compute_duration_seconds", "Time of one phase of a batch.",
                      TimeBuckets(), "phase", kPhases);
};

ModelMetrics::ModelMetrics(std::unique_ptr<Handles> handles) : handles_(std::move(handles)) {}
ModelMetrics::~ModelMetrics() = default;

void ModelMetrics::SetState(std::optional<ModelState> state) {
  // Two threads that change the state at once must not leave two states at 1.
  const MutexLock lock(handles_->state_mutex);
  for (prometheus::Gauge* gauge : handles_->state) gauge->Set(0);
  if (state) At(handles_->state, *state).Set(1);
}

void ModelMetrics::LoadEnded(bool ok) { handles_->loads[ok ? 0 : 1]->Increment(); }

void ModelMetrics::SetLoaded(std::chrono::nanoseconds load, std::chrono::nanoseconds warmup,
                             std::string_view device, int64_t bytes) {
  handles_->load.Set(Seconds(load));
  handles_->warmup.Set(Seconds(warmup));
  AddBytes(device, bytes);
}

void ModelMetrics::AddBytes(std::string_view device, int64_t change) {
  handles_->make
      .Gauge("linserve_model_bytes", "Bytes of the parameters and buffers, of all copies.",
             {{"device", std::string(device)}})
      .Increment(static_cast<double>(change));
}

void ModelMetrics::QueueChanged(const QueueState& before, const QueueState& after) {
  const auto add = [](prometheus::Gauge& gauge, int64_t old_value, int64_t new_value) {
    gauge.Increment(static_cast<double>(new_value - old_value));
  };
  add(handles_->queue_requests, before.requests, after.requests);
  add(handles_->queue_sequences, before.sequences, after.sequences);
  add(handles_->queue_tokens, before.tokens, after.tokens);
  add(handles_->queue_bytes, before.bytes, after.bytes);
  // Fractions of seconds, added again and again, would not come back to 0.
  const MutexLock lock(handles_->delay_mutex);
  handles_->delay += after.delay - before.delay;
  handles_->queue_delay.Set(Seconds(handles_->delay));
}

void ModelMetrics::TokenizeTime(std::chrono::nanoseconds time) {
  handles_->tokenize.Observe(Seconds(time));
}

void ModelMetrics::Arrived(int64_t tokens) {
  handles_->arrived_tokens.Increment(static_cast<double>(tokens));
}

void ModelMetrics::Accepted(int64_t sequence_length) {
  handles_->sequence_length.Observe(static_cast<double>(sequence_length));
}

void ModelMetrics::Rejected(RejectReason reason) { At(handles_->rejected, reason).Increment(); }
void ModelMetrics::BatchSplit(SplitReason reason) { At(handles_->splits, reason).Increment(); }

void ModelMetrics::AddReplicas(int64_t change) {
  handles_->replicas.Increment(static_cast<double>(change));
}

void ModelMetrics::AddBusyTime(std::chrono::nanoseconds time) {
  handles_->busy.Increment(Seconds(time));
}

void ModelMetrics::AddReplicasLost(int64_t change) {
  handles_->replicas_lost.Increment(static_cast<double>(change));
}

void ModelMetrics::Abandoned(AbandonStage stage) { At(handles_->abandoned, stage).Increment(); }

void ModelMetrics::Wasted(int64_t tokens) {
  handles_->wasted.Increment(static_cast<double>(tokens));
}

void ModelMetrics::Displaced() { handles_->displaced.Increment(); }

void ModelMetrics::Delivered(int code) { OfCode(handles_->results, code).Increment(); }

void ModelMetrics::AddSessions(int64_t change, int64_t bytes) {
  handles_->sessions.Increment(static_cast<double>(change));
  handles_->session_bytes.Increment(static_cast<double>(bytes));
}

void ModelMetrics::SessionOpened(bool restored) {
  handles_->sessions_opened[restored ? 1 : 0]->Increment();
}

void ModelMetrics::SessionClosed(SessionEnd reason) {
  At(handles_->sessions_closed, reason).Increment();
}

void ModelMetrics::Generated() { handles_->generated_tokens.Increment(); }

void ModelMetrics::CacheLookup(CacheOutcome outcome) {
  At(handles_->cache_lookups, outcome).Increment();
}

void ModelMetrics::AddCacheBytes(int64_t change) {
  handles_->cache_bytes.Increment(static_cast<double>(change));
}

void ModelMetrics::BatchClosed(const Batch& batch, CloseReason reason) {
  const auto sequences = static_cast<double>(batch.size());
  const auto rows = static_cast<double>(batch.rows);
  const auto padding = static_cast<double>(batch.padding_rows);
  handles_->sequences.Increment(sequences);
  handles_->tokens.Increment(rows - padding);
  At(handles_->padded_tokens, batch.padding).Increment(padding);
  At(handles_->batches, reason).Increment();
  handles_->batch_sequences.Observe(sequences);
  handles_->batch_tokens.Observe(rows);
}

void ModelMetrics::QueueTime(std::chrono::nanoseconds time) {
  handles_->queue_duration.Observe(Seconds(time));
}

void ModelMetrics::BatchFormTime(std::chrono::nanoseconds time) {
  handles_->batch_form_duration.Observe(Seconds(time));
}

void ModelMetrics::ComputeTime(ComputePhase phase, std::chrono::nanoseconds time) {
  At(handles_->compute_duration, phase).Observe(Seconds(time));
}

std::vector<prometheus::MetricFamily> ModelMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families = handles_->registry.Collect();
  std::vector<prometheus::MetricFamily> more =
      TritonMetrics(statistics_.Read(), handles_->queue_requests.Value(), handles_->labels);
  std::move(more.begin(), more.end(), std::back_inserter(families));
  return families;
}

std::shared_ptr<ModelMetrics> MakeModelMetrics(const std::string& name, int64_t version) {
  return std::make_shared<ModelMetrics>(std::make_unique<ModelMetrics::Handles>(name, version));
}

}  // namespace linserve
