#include <optional>
#include <utility>

#include "engine/engine.h"

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
  const auto origin = std::make_shared<const RequestOrigin>(
      RequestOrigin{request.id, request.trace_id, request.caller});
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

}  // namespace linserve
