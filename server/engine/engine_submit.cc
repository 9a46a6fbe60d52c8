#include <iterator>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/engine.h"

namespace linserve {
namespace {

// Returns OK if the sequences of the request can be computed in one batch.
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

// Makes one entry of the queue of all sequences of a request. REQUIRES: there are some.
std::vector<Pending> Unite(std::vector<Pending> members) {
  std::vector<Pending> unit;
  unit.push_back(std::move(members[0]));
  unit[0].rest.assign(std::make_move_iterator(members.begin() + 1),
                      std::make_move_iterator(members.end()));
  return unit;
}

// Makes what stands for a chunk that is not computed in the line of its session.
Pending FaultyChunk(const Request& request, const Item& item, size_t index,
                    const std::shared_ptr<const RequestOrigin>& origin) {
  Item chunk;
  chunk.chunk = item.chunk;
  return Pending{
      .item = std::move(chunk), .origin = origin, .delivery = Delivery(request.sink, index)};
}

}  // namespace

Pending Engine::Prepare(const Request& request, const Item& item, size_t index,
                        const std::shared_ptr<const RequestOrigin>& origin,
                        const std::shared_ptr<ResultSink>& sink) const {
  Pending pending{.item = item,
                  .bytes = 0,
                  .unit = info_.signature.request_is_unit,
                  .priority = request.priority,
                  .deadline = request.deadline,
                  .origin = origin,
                  .delivery = Delivery(sink, index)};
  LayOut(pending);
  if (pending.unit) pending.key = BatchKey(info_.signature, item);
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

// Returns OK if the engine can compute the item.
absl::Status Engine::Check(absl::StatusOr<Item>& item) const {
  if (!item.ok()) return item.status();
  FoldAxes(info_.signature, *item);
  if (item->chunk != nullptr && sessions_ == nullptr) {
    return absl::UnimplementedError(info_.architecture + " has no sessions: " + info_.no_sessions);
  }
  return Validate(info_.signature, *item);
}

// Sorts the sequences of a request by what becomes of them.
struct Engine::Intake {
  std::vector<Pending> whole;
  std::vector<ArrivedChunk> chunks;
  std::vector<int64_t> lengths;  // of those that can be computed
  std::vector<size_t> indices;   // where each of `whole` stands in the request
  bool faults = false;           // any of its sequences has one
  bool generates = false;        // any of its chunks goes on by itself
  std::vector<std::pair<size_t, absl::Status>> faulty;

  // Gives back the duty to answer, as the request is refused.
  void Release() {
    for (Pending& pending : whole) {
      pending.delivery.Release();
      for (Pending& other : pending.rest) other.delivery.Release();
    }
    for (ArrivedChunk& chunk : chunks) chunk.pending.delivery.Release();
  }
};

Engine::Intake Engine::Sort(Request& request, const std::shared_ptr<Answers>& answers) const {
  Intake intake;
  const auto origin = std::make_shared<const RequestOrigin>(
      RequestOrigin{request.id, request.trace, request.caller});
  for (size_t i = 0; i < request.items.size(); ++i) {
    absl::StatusOr<Item>& item = request.items[i];
    absl::Status fault = Check(item);
    const bool chunk = item.ok() && item->chunk != nullptr && sessions_ != nullptr;
    if (!fault.ok()) {
      intake.faults = true;
      if (chunk) {  // those behind it have to know
        intake.chunks.push_back({FaultyChunk(request, *item, i, origin), std::move(fault)});
      } else {
        intake.faulty.emplace_back(i, std::move(fault));
      }
      continue;
    }
    intake.generates = intake.generates || item->then != nullptr;
    answers->Expect(i);
    Pending pending = Prepare(request, *item, i, origin, answers);
    intake.lengths.push_back(item->then != nullptr ? item->then->Rows() : pending.tokens);
    if (chunk) {
      intake.chunks.push_back({std::move(pending), absl::OkStatus()});
    } else {
      intake.whole.push_back(std::move(pending));
      intake.indices.push_back(i);
    }
  }
  return intake;
}

absl::Status Engine::Submit(Request& request) {
  if (!ready()) {
    return absl::UnavailableError(
        "the model's device was lost, and it is being loaded again; try another server");
  }
  const auto answers = std::make_shared<Answers>(request.sink, request.items.size(),
                                                 request.deadline, *metrics_, open_);
  Intake intake = Sort(request, answers);
  absl::Status unit;
  if (info_.signature.request_is_unit && !intake.whole.empty()) {
    unit = CheckUnit(request.items.size(), intake.whole);
    if (unit.ok()) intake.whole = Unite(std::move(intake.whole));
  }
  if (!unit.ok()) {
    intake.Release();
    for (size_t index : intake.indices) intake.faulty.emplace_back(index, unit);
  } else if (absl::Status status = Enqueue(intake.whole); !status.ok()) {
    intake.Release();
    return status;
  } else {
    for (int64_t length : intake.lengths) metrics_->Accepted(length);
    if (intake.generates || request.deadline != TimePoint::max()) {
      open_.Watch(answers, intake.generates);
    }
    if (!intake.chunks.empty()) sessions_->Take(std::move(intake.chunks));
  }
  if (intake.faults || !unit.ok()) metrics_->Rejected(RejectReason::kInvalid);
  for (auto& [index, status] : intake.faulty) {
    Delivery(request.sink, index).Complete(std::move(status));
  }
  return absl::OkStatus();
}

// Hands the sequences to the queue, through the cache if there is one. Refuses all or nothing of
// them, unless some have been answered by then: the others then have the refusal for a result.
absl::Status Engine::Enqueue(std::vector<Pending>& accepted) {
  if (cache_ == nullptr || info_.signature.request_is_unit) return queue_.Push(accepted);
  std::vector<std::pair<Delivery, ItemResult>> hits;
  std::vector<Pending> misses;
  const size_t all = accepted.size();
  for (Pending& one : accepted) {
    std::optional<Pending> pending = std::move(one);
    const TimePoint start = clock_.Now();
    auto hit = cache_->LookUp(pending);
    metrics_->statistics().LookedUp(hit.has_value(), clock_.Now() - start);
    if (hit) {
      hits.emplace_back(std::move(pending->delivery), *std::move(hit));
    } else if (pending) {
      misses.push_back(*std::move(pending));
    }
  }
  accepted = std::move(misses);
  absl::Status status = accepted.empty() ? absl::OkStatus() : queue_.Push(accepted);
  if (!status.ok() && accepted.size() == all) return status;
  for (Pending& refused : accepted) refused.delivery.Complete(status);
  for (auto& [delivery, result] : hits) delivery.Complete(std::move(result));
  return absl::OkStatus();
}

// Queues a chunk whose session has been found; the session counts for how the chunk is laid out.
absl::Status Engine::EnqueueChunk(Pending& chunk, bool next) {
  LayOut(chunk);
  std::vector<Pending> alone;
  alone.reserve(1);
  const absl::Cleanup give_back = [&] {
    if (!alone.empty()) chunk = std::move(alone[0]);
  };
  alone.push_back(std::move(chunk));
  if (!next) return queue_.Push(alone);
  queue_.PushNext(alone);
  return absl::OkStatus();
}

}  // namespace linserve
