#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "engine/batch_runner.h"
#include "engine/warmup.h"
#include "telemetry/log.h"
#include "telemetry/trace.h"

namespace linserve {
namespace {

// OK if the sequences of the request can be computed in one batch.
absl::Status CheckUnit(size_t all, const std::vector<Pending>& accepted) {
  constexpr const char* kWhy =
      ": this model mixes the sequences of a request, so that they are computed together or not at "
      "all";
  if (accepted.size() != all) {
    return absl::InvalidArgumentError(std::string("another sequence of the request is faulty") +
                                      kWhy);
  }
  if (static_cast<int64_t>(all) > kMostSequencesPerBatch) {
    return absl::InvalidArgumentError(std::to_string(all) +
                                      " sequences in a request, expected at " + "most " +
                                      std::to_string(kMostSequencesPerBatch) + kWhy);
  }
  for (const Pending& pending : accepted) {
    if (pending.key != accepted[0].key) {
      return absl::InvalidArgumentError(
          std::string("the sequences of the request differ in inputs, outputs or lengths") + kWhy);
    }
  }
  return absl::OkStatus();
}

// Counts what it hands on: every accepted sequence comes here exactly once.
class CountedResults : public ResultSink {
 public:
  CountedResults(std::shared_ptr<ResultSink> sink, ModelMetrics& metrics)
      : sink_(std::move(sink)), metrics_(metrics) {}

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override {
    metrics_.Delivered(result.status().raw_code());
    sink_->Deliver(index, std::move(result));
  }
  void Report(size_t index, const ItemProgress& progress) override {
    sink_->Report(index, progress);
  }
  bool Abandoned() const override { return sink_->Abandoned(); }

 private:
  const std::shared_ptr<ResultSink> sink_;
  ModelMetrics& metrics_;
};

}  // namespace

// What the workers tell Start() about their replicas.
class Engine::Startup {
 public:
  void Report(const absl::StatusOr<ModelInfo>& replica) {
    MutexLock lock(mutex_);
    ++reported_;
    if (!replica.ok()) {
      status_.Update(replica.status());
    } else {
      info_ = *replica;
    }
    changed_.NotifyAll();
  }

  absl::StatusOr<ModelInfo> WaitFor(int64_t replicas) {
    MutexLock lock(mutex_);
    while (reported_ < replicas) changed_.Wait(lock);
    if (!status_.ok()) return status_;
    return info_;
  }

  // Workers wait here until the engine is complete.
  void Release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

  void WaitForRelease() {
    MutexLock lock(mutex_);
    while (!released_) changed_.Wait(lock);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int64_t reported_ LINSERVE_GUARDED_BY(mutex_) = 0;
  bool released_ LINSERVE_GUARDED_BY(mutex_) = false;
  absl::Status status_ LINSERVE_GUARDED_BY(mutex_);
  ModelInfo info_ LINSERVE_GUARDED_BY(mutex_);
};

Engine::Engine(const EngineOptions& options, ModelMetrics& metrics, Clock& clock)
    : options_(options),
      metrics_(metrics),
      clock_(clock),
      queue_(options.limits, options.policy, clock, metrics,
             {options.replicas, [this](int64_t tokens) { return speed_.TimeFor(tokens); }}) {
  if (options.cache_bytes > 0) {
    cache_ = std::make_shared<ResultCache>(options.cache_bytes, clock, metrics);
  }
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(const EngineOptions& options,
                                                      const ModelFactory& factory,
                                                      ModelMetrics& metrics, Clock& clock) {
  std::unique_ptr<Engine> engine(new Engine(options, metrics, clock));
  auto startup = std::make_shared<Startup>();
  {
    MutexLock lock(engine->mutex_);
    engine->working_ = options.replicas;
  }
  for (int64_t i = 0; i < options.replicas; ++i) {
    engine->workers_.emplace_back(
        [engine = engine.get(), factory, i, startup] { engine->Work(factory, i, *startup); });
  }
  const auto info = startup->WaitFor(options.replicas);
  if (info.ok()) {
    engine->info_ = *info;
    engine->padder_ =
        std::make_unique<Padder>(engine->info_.signature, options.padding, options.buckets);
    engine->KeepSessions();
  } else {
    engine->queue_.Close();
  }
  startup->Release();
  if (!info.ok()) return info.status();
  return engine;
}

void Engine::KeepSessions() {
  if (info_.sessions == nullptr) return;
  sessions_ = std::make_shared<SessionTable>(
      options_.sessions, info_.sessions, info_.signature,
      [this](Pending chunk, bool next) { Compute(std::move(chunk), next); }, clock_, metrics_);
  expiry_ = std::make_unique<Periodic>([this] {
    sessions_->Expire();
    return std::chrono::seconds(1);
  });
}

Engine::~Engine() {
  StopAccepting();
  for (std::thread& worker : workers_) worker.join();
}

Pending Engine::Prepare(const Request& request, const Item& item, size_t index,
                        const std::shared_ptr<const RequestOrigin>& origin,
                        const std::shared_ptr<ResultSink>& sink) const {
  Pending pending{.item = item,
                  .key = {},
                  .bytes = 0,
                  .unit = info_.signature.request_is_unit,
                  .priority = request.priority,
                  .enqueued = {},
                  .deadline = request.deadline,
                  .origin = origin,
                  .delivery = Delivery(sink, index),
                  .siblings = nullptr};
  LayOut(pending);
  if (pending.unit) {
    // No other request has this origin object, so that none shares the key.
    const auto own = reinterpret_cast<uintptr_t>(origin.get());
    pending.key = BatchKey(info_.signature, item) + "#" + std::to_string(own);
  }
  for (const auto& [name, tensor] : item.inputs) {
    pending.bytes += static_cast<int64_t>(tensor.byte_size());
  }
  return pending;
}

void Engine::LayOut(Pending& pending) const {
  pending.key = padder_->Key(pending.item);
  pending.cost = padder_->Cost(pending.item);
  pending.tokens = PackedRows(info_.signature, pending.item);
}

// OK if the engine can compute the item.
absl::Status Engine::Check(absl::StatusOr<Item>& item) const {
  if (!item.ok()) return item.status();
  FoldAxes(info_.signature, *item);
  if (item->chunk != nullptr && sessions_ == nullptr) {
    return absl::UnimplementedError(info_.architecture + " has no sessions: " + info_.no_sessions);
  }
  return Validate(info_.signature, *item);
}

absl::Status Engine::Submit(Request& request) {
  if (!ready()) {
    return absl::UnavailableError(
        "the model's device was lost, and it is being loaded again; try another server");
  }
  std::vector<Pending> accepted;
  std::vector<Pending> chunks;
  std::vector<int64_t> lengths;
  std::vector<size_t> indices;  // of those
  std::vector<std::pair<size_t, absl::Status>> faulty;
  const auto counted = std::make_shared<CountedResults>(request.sink, metrics_);
  const auto origin =
      std::make_shared<const RequestOrigin>(RequestOrigin{request.id, request.caller});
  for (size_t i = 0; i < request.items.size(); ++i) {
    absl::StatusOr<Item>& item = request.items[i];
    if (absl::Status status = Check(item); !status.ok()) {
      faulty.emplace_back(i, std::move(status));
      continue;
    }
    std::vector<Pending>& taken = item->chunk == nullptr ? accepted : chunks;
    taken.push_back(Prepare(request, *item, i, origin, counted));
    lengths.push_back(taken.back().tokens);
    indices.push_back(i);
  }
  absl::Status unit;
  if (info_.signature.request_is_unit && !accepted.empty()) {
    unit = CheckUnit(request.items.size(), accepted);
  }
  if (!unit.ok()) {
    for (Pending& pending : accepted) pending.delivery.Release();
    for (size_t index : indices) faulty.emplace_back(index, unit);
  } else if (absl::Status status = Enqueue(accepted); !status.ok()) {
    for (Pending& pending : accepted) pending.delivery.Release();
    for (Pending& pending : chunks) pending.delivery.Release();
    return status;
  } else {
    for (int64_t length : lengths) metrics_.Accepted(length);
    for (Pending& chunk : chunks) sessions_->Take(std::move(chunk));
  }
  if (!faulty.empty()) metrics_.Rejected(RejectReason::kInvalid);
  for (auto& [index, status] : faulty) Delivery(request.sink, index).Complete(std::move(status));
  return absl::OkStatus();
}

// Through the cache, if there is one, to the queue. Refuses all or nothing of them, unless some
// have been answered by then: the others then have the refusal for a result.
absl::Status Engine::Enqueue(std::vector<Pending>& accepted) {
  if (cache_ == nullptr || info_.signature.request_is_unit) return queue_.Push(accepted);
  std::vector<std::pair<Delivery, ItemResult>> hits;
  std::vector<Pending> misses;
  for (Pending& one : accepted) {
    std::optional<Pending> pending = std::move(one);
    const TimePoint start = clock_.Now();
    auto hit = cache_->Admit(pending);
    metrics_.statistics().LookedUp(hit.has_value(), clock_.Now() - start);
    if (hit) {
      hits.emplace_back(std::move(pending->delivery), *std::move(hit));
    } else if (pending) {
      misses.push_back(*std::move(pending));
    }
  }
  const bool none_is_answered = misses.size() == accepted.size();
  absl::Status status = misses.empty() ? absl::OkStatus() : queue_.Push(misses);
  if (!status.ok()) {
    for (Pending& miss : misses) ResultCache::Refuse(miss, status, none_is_answered);
    if (none_is_answered) return status;
  }
  for (auto& [delivery, result] : hits) {
    result.timing = {};
    delivery.Complete(std::move(result));
  }
  return absl::OkStatus();
}

// A chunk whose session has been found, which counts for how it is laid out.
void Engine::Compute(Pending chunk, bool next) {
  LayOut(chunk);
  if (next) return queue_.PushNext(std::move(chunk));
  std::vector<Pending> alone;
  alone.push_back(std::move(chunk));
  const absl::Status status = queue_.Push(alone);
  if (!status.ok()) alone[0].delivery.Complete(status);
}

void Engine::StopAccepting() {
  queue_.Close();
  MutexLock lock(mutex_);
  closed_ = true;
  closing_.NotifyAll();
}

size_t Engine::Drain(TimePoint deadline) {
  StopAccepting();
  {
    MutexLock lock(mutex_);
    while (working_ > 0 && clock_.Now() < deadline) clock_.WaitUntil(lock, finished_, deadline);
  }
  return queue_.Flush(absl::UnavailableError("the server is shutting down; try another one"));
}

void Engine::Work(const ModelFactory& factory, int64_t replica, Startup& startup) {
  NameTraceThread(options_.name + " replica " + std::to_string(replica));
  {
    auto model = TryLoad(factory, replica);
    startup.Report(model.ok() ? absl::StatusOr<ModelInfo>((*model)->info()) : model.status());
    startup.WaitForRelease();
    while (model.ok() && padder_ != nullptr) {
      Serve(**model);
      if (!(*model)->lost()) break;
      model->reset();
      model = Rebuild(factory, replica);
    }
  }
  MutexLock lock(mutex_);
  --working_;
  finished_.NotifyAll();
}

// Until the queue is closed and empty, or the model is lost.
void Engine::Serve(Model& model) {
  const int64_t most = options_.policy.max_tokens;
  BatchRunner runner(model, *padder_, metrics_, clock_, speed_,
                     {most, [this, most] { return queue_.PopShort(most); }});
  while (!model.lost()) {
    const bool was_busy = runner.busy();
    auto batch = was_busy ? queue_.PopDue() : queue_.Pop();
    if (!batch && !was_busy) return;
    if (!was_busy) busy_.Begin(clock_.Now());
    if (batch) {
      runner.Run(*std::move(batch));
    } else {
      runner.Finish();
    }
    if (!runner.busy()) busy_.End(clock_.Now());
  }
  if (!runner.busy()) return;
  runner.Finish();
  busy_.End(clock_.Now());
}

// Loads a replica again whose device was lost, until that succeeds or nobody needs it any more.
absl::StatusOr<std::unique_ptr<Model>> Engine::Rebuild(const ModelFactory& factory,
                                                       int64_t replica) {
  constexpr std::chrono::seconds kLongest(30);
  std::chrono::nanoseconds pause = std::chrono::seconds(1);
  SetLost(+1);
  while (true) {
    auto model = TryLoad(factory, replica);
    if (model.ok()) {
      failed_rebuilds_ = 0;
      SetLost(-1);
      Log(LogLevel::kInfo, "a lost replica is loaded again", {{"replica", replica}});
      return model;
    }
    ++failed_rebuilds_;
    Log(LogLevel::kError, "a lost replica cannot be loaded again",
        {{"replica", replica}, {"error", std::string(model.status().message())}});
    if (WaitForClose(pause)) return model;
    pause = std::min<std::chrono::nanoseconds>(2 * pause, kLongest);
  }
}

void Engine::SetLost(int64_t change) {
  if (change > 0 && sessions_ != nullptr) sessions_->DeviceLost();
  const bool before = ready();
  replicas_lost_ += change;
  metrics_.SetReplicasLost(replicas_lost_);
  if (ready() == before) return;
  if (!ready()) {
    queue_.Flush(absl::UnavailableError("the model's device was lost; try another server"));
  }
  if (options_.on_ready_change) options_.on_ready_change();
}

// False if it has not been closed for so long.
bool Engine::WaitForClose(std::chrono::nanoseconds most) {
  const TimePoint end = clock_.Now() + most;
  MutexLock lock(mutex_);
  while (!closed_ && clock_.Now() < end) clock_.WaitUntil(lock, closing_, end);
  return closed_;
}

absl::StatusOr<std::unique_ptr<Model>> Engine::TryLoad(const ModelFactory& factory,
                                                       int64_t replica) const {
  try {
    return Load(factory, replica);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory to load the model and warm it up");
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("loading the model failed: ") + error.what());
  }
}

absl::StatusOr<std::unique_ptr<Model>> Engine::Load(const ModelFactory& factory,
                                                    int64_t replica) const {
  const TimePoint start = clock_.Now();
  auto model = factory(replica);
  if (!model.ok()) return model;
  const TimePoint loaded = clock_.Now();
  const ModelInfo& info = (*model)->info();
  if (options_.warmup) {
    const Padder padder(info.signature, options_.padding, options_.buckets);
    absl::Status status = (*model)->Prepare();
    if (status.ok()) status = WarmUp(**model, padder, options_.policy);
    if (!status.ok()) return status;
  }
  metrics_.SetLoaded(loaded - start, clock_.Now() - loaded, info.device, info.bytes);
  return model;
}

std::chrono::nanoseconds Engine::DelayEstimate() const { return queue_.DelayEstimate(); }

}  // namespace linserve
