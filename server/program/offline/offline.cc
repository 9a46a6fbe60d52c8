#include "program/offline/offline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/files/safetensors.h"
#include "core/sequence/package_layout.h"
#include "core/threads/mutex.h"
#include "models/devices.h"
#include "models/model_loader.h"
#include "program/option_flags.h"

namespace linserve {
namespace {

// Sequences that are submitted at once, as callers of a server send them: the engine computes some
// while it is given others.
constexpr size_t kSequencesOfRequest = 64;

// Waits for the results of several requests.
class Collector {
 public:
  explicit Collector(size_t count) : results_(count, absl::InternalError("no result")) {}

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) {
    MutexLock lock(mutex_);
    results_[index] = std::move(result);
    ++delivered_;
    // To wake the one who waits takes longer than to deliver a small result.
    const size_t between = std::max<size_t>(1, results_.size() / 64);
    if (delivered_ % between == 0 || delivered_ == results_.size()) changed_.NotifyAll();
  }

  std::vector<absl::StatusOr<ItemResult>> Wait(
      const std::function<void(size_t, size_t)>& progress) {
    MutexLock lock(mutex_);
    while (delivered_ < results_.size()) {
      changed_.Wait(lock);
      progress(delivered_, results_.size());
    }
    return std::move(results_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<absl::StatusOr<ItemResult>> results_ ABSL_GUARDED_BY(mutex_);
  size_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Takes the results of one request, the first of which is so many sequences from all's first.
class RequestResults : public ResultSink {
 public:
  RequestResults(std::shared_ptr<Collector> all, size_t first)
      : all_(std::move(all)), first_(first) {}

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override {
    all_->Deliver(first_ + index, std::move(result));
  }
  bool Abandoned() const override { return false; }

 private:
  const std::shared_ptr<Collector> all_;
  const size_t first_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> StartOffline(const OfflineModel& model,
                                                     ModelMetrics& metrics) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const auto devices = PlanDevices(model.device);
  if (!devices.ok()) return devices.status();
  LogImpliedPadding(model.directory, model.serving);
  const ReplicaPlan plan = model.serving.Replicas(devices->accelerators());
  EngineOptions options = model.serving.ForEngine(plan);
  options.limits = {kAny, kAny, kAny};
  const ModelLoadOptions load = LoadOptionsFor(model.serving, plan);
  return Engine::Start(options, ReplicasOf(model.directory, load, devices->devices), metrics);
}

absl::StatusOr<std::vector<Item>> ReadItems(const std::string& path, const Signature& signature) {
  const auto file = ReadSafetensors(path);
  if (!file.ok()) return file.status();
  const auto batch = PackageBatch::From(signature, file->tensors);
  if (!batch.ok()) return batch.status();
  return SplitBatch(signature, *batch);
}

absl::StatusOr<std::vector<TensorMap>> RunAll(
    Engine& engine, std::vector<Item> items,
    const std::function<void(size_t done, size_t all)>& progress) {
  auto collector = std::make_shared<Collector>(items.size());
  const bool unit = engine.info().signature.request_is_unit;
  const size_t most = unit ? items.size() : kSequencesOfRequest;
  for (size_t first = 0; first < items.size(); first += most) {
    Request request;
    request.id = "offline";
    request.sink = std::make_shared<RequestResults>(collector, first);
    for (size_t i = first; i < std::min(first + most, items.size()); ++i) {
      request.items.emplace_back(std::move(items[i]));
    }
    if (absl::Status status = engine.Submit(request); !status.ok()) return status;
  }
  std::vector<TensorMap> outputs;
  for (absl::StatusOr<ItemResult>& result : collector->Wait(progress)) {
    if (!result.ok()) {
      return absl::Status(result.status().code(), "sequence " + std::to_string(outputs.size()) +
                                                      ": " +
                                                      std::string(result.status().message()));
    }
    outputs.push_back(std::move(result->outputs));
  }
  return outputs;
}

}  // namespace linserve
