#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/status/draining.h"
#include "core/threads/guarded.h"
#include "core/threads/side_by_side.h"
#include "engine/batch_runner.h"
#include "engine/warmup.h"
#include "telemetry/log.h"
#include "telemetry/trace/trace.h"

namespace linserve {

// Collects what the workers tell Start() about their replicas.
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

  // Lets the workers go on, which wait until the engine is complete.
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
  int64_t reported_ ABSL_GUARDED_BY(mutex_) = 0;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  ModelInfo info_ ABSL_GUARDED_BY(mutex_);
};

Engine::Engine(const EngineOptions& options, ModelMetrics& metrics, Clock& clock)
    : options_(options),
      metrics_(metrics.shared_from_this()),
      clock_(clock),
      busy_(apart()),
      open_(clock, [this] { return queue_.DropDeparted(); }),
      queue_(
          options.limits, options.policy, clock, metrics,
          {.count = options.replicas,
           .time_for = [this](int64_t tokens) { return speed_.TimeFor(tokens); },
           .beyond_budget = options.shared ? options.apart : std::numeric_limits<int64_t>::max()}) {
  metrics_->AddReplicas(options.replicas);
  if (options.cache_bytes > 0) {
    cache_ = std::make_shared<ResultCache>(options.cache_bytes, clock, metrics);
  }
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(const EngineOptions& options,
                                                      const ModelFactory& factory,
                                                      ModelMetrics& metrics, Clock& clock) {
  std::unique_ptr<Engine> engine(new Engine(options, metrics, clock));
  auto startup = std::make_shared<Startup>();
  // Also where a thread cannot be made: those that were are joined then.
  const absl::Cleanup release = [&] { startup->Release(); };
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
    engine->padder_ = std::make_unique<Padder>(engine->PadderFor(engine->info_));
    engine->KeepSessions();
  } else {
    engine->queue_.Close();
  }
  if (!info.ok()) return info.status();
  return engine;
}

Padder Engine::PadderFor(const ModelInfo& info) const {
  return {info.signature, options_.padding.value_or(info.padding), options_.buckets};
}

void Engine::KeepSessions() {
  if (info_.sessions == nullptr) return;
  sessions_ = std::make_shared<SessionTable>(
      options_.sessions, info_.sessions, info_.signature,
      [this](Pending& chunk, bool next) { return EnqueueChunk(chunk, next); },
      [this](Pending& chunk) { return queue_.Hold(chunk); }, clock_, *metrics_);
  if (options_.sessions.budget != nullptr) options_.sessions.budget->Join(sessions_);
  expiry_ = std::make_unique<Periodic>([this] {
    sessions_->Expire();
    return std::chrono::seconds(1);
  });
}

Engine::~Engine() {
  StopAccepting();
  for (std::thread& worker : workers_) worker.join();
  open_.Stop();  // which may be looking at the queue
  metrics_->AddReplicas(-options_.replicas);
  metrics_->AddReplicasLost(-replicas_lost_);
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
  const absl::Status status = DrainingError();
  size_t given_up = open_.AnswerGenerating(status);
  if (sessions_ != nullptr) given_up += sessions_->Flush(status);
  given_up += queue_.Flush(status);
  open_.GiveUp(status);
  return given_up;
}

void Engine::Work(const ModelFactory& factory, int64_t replica, Startup& startup) {
  NameTraceThread(options_.name + " replica " + std::to_string(replica));
  {
    auto model = TryLoad(factory, replica);
    startup.Report(model.ok() ? absl::StatusOr<ModelInfo>((*model)->info()) : model.status());
    startup.WaitForRelease();
    while (model.ok() && padder_ != nullptr) {
      ServeGuarded(**model);
      if (!(*model)->lost()) break;
      Unload(**model, replica);
      model->reset();
      model = Rebuild(factory, replica);
    }
    if (model.ok()) Unload(**model, replica);
  }
  MutexLock lock(mutex_);
  --working_;
  finished_.NotifyAll();
}

void Engine::Unload(const Model& model, int64_t replica) {
  if (!HasOwnWeights(replica)) return;
  metrics_->AddBytes(model.info().device, -model.info().bytes);
}

// Goes on with the next batch where one is lost for want of memory: its callers have been answered
// as it was destroyed.
void Engine::ServeGuarded(Model& model) {
  constexpr std::chrono::milliseconds kPause(10);  // there may be memory again
  for (bool done = false; !done;) {
    RunGuarded("a batch", [&] {
      Serve(model);
      done = true;
    });
    if (!done) std::this_thread::sleep_for(kPause);
  }
}

// Says that a worker computes, for as long as this lives.
class Engine::Busy {
 public:
  explicit Busy(Engine& engine) : engine_(engine) {
    engine.busy_.Begin(engine.clock_.Now());
    if (engine.options_.shared) computes_.emplace();
  }
  ~Busy() { engine_.busy_.End(engine_.clock_.Now()); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Engine& engine_;
  std::optional<ComputingScope> computes_;
};

// Serves until the queue is closed and empty, or the model is lost.
void Engine::Serve(Model& model) {
  const auto count_busy = [this] { metrics_->AddBusyTime(busy_.TakeMean(clock_.Now())); };
  BatchRunner runner(
      model, *padder_, *metrics_, clock_, speed_,
      {options_.policy.long_rows, [this](int64_t most_rows) { return PopShort(most_rows); }},
      count_busy);
  std::optional<Busy> busy;  // from batch to batch, as long as there is a next one
  while (!model.lost()) {
    auto batch = busy ? queue_.PopDue() : queue_.Pop();
    if (batch && !LeaveWhatIsCached(*batch)) continue;
    if (batch) {
      if (!busy) busy.emplace(*this);
      runner.Run(*std::move(batch));
    } else if (runner.busy()) {
      runner.Finish();
    } else if (busy) {
      busy.reset();
    } else {
      return;
    }
    count_busy();
  }
  if (runner.busy()) runner.Finish();
}

// Lets the sequences of a batch answer for all who share them. Returns false if none is left to be
// computed, since all have been meanwhile, or are.
bool Engine::LeaveWhatIsCached(ClosedBatch& batch) {
  if (cache_ != nullptr) cache_->BeginComputing(batch.sequences);
  return !batch.sequences.empty();
}

std::optional<ClosedBatch> Engine::PopShort(int64_t most_rows) {
  auto batch = queue_.PopShort(most_rows);
  if (batch && !LeaveWhatIsCached(*batch)) batch.reset();
  return batch;
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
  metrics_->AddReplicasLost(change);
  if (ready() == before) return;
  if (!ready()) {
    queue_.Flush(absl::UnavailableError("the model's device was lost; try another server"));
  }
  if (options_.on_ready_change) options_.on_ready_change();
}

// Waits until the engine is closed; returns false if that did not happen for so long.
bool Engine::WaitForClose(std::chrono::nanoseconds most) {
  const TimePoint end = clock_.Now() + most;
  MutexLock lock(mutex_);
  while (!closed_ && clock_.Now() < end) clock_.WaitUntil(lock, closing_, end);
  return closed_;
}

absl::StatusOr<std::unique_ptr<Model>> Engine::TryLoad(const ModelFactory& factory,
                                                       int64_t replica) {
  try {
    return Load(factory, replica);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory to load the model and warm it up");
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("loading the model failed: ") + error.what());
  }
}

absl::StatusOr<std::unique_ptr<Model>> Engine::Load(const ModelFactory& factory, int64_t replica) {
  const TimePoint start = clock_.Now();
  auto model = factory(replica);
  if (!model.ok() || !HasOwnWeights(replica)) return model;
  const TimePoint loaded = clock_.Now();
  const ModelInfo& info = (*model)->info();
  if (options_.warmup) {
    const Padder padder = PadderFor(info);
    absl::Status status = (*model)->Prepare();
    if (status.ok()) status = WarmUp(**model, padder, options_.policy, clock_, speed_);
    if (!status.ok()) return status;
  }
  metrics_->SetLoaded(loaded - start, clock_.Now() - loaded, info.device, info.bytes);
  return model;
}

std::chrono::nanoseconds Engine::DelayEstimate() const { return queue_.DelayEstimate(); }

}  // namespace linserve
