#include "engine/batch_delivery.h"

#include <string>
#include <utility>

#include "core/threads/guarded.h"
#include "telemetry/log.h"

namespace linserve {

absl::Status DeadlinePassed() {
  return absl::DeadlineExceededError("the deadline passed while the sequence was computed");
}

void BatchDelivery::Results(ClosedBatch& closed, const std::vector<bool>& departed,
                            const Timing& timing, Forward::Results outputs) {
  metrics_.statistics().Executed(timing);
  for (size_t i = 0; i < closed.sequences.size(); ++i) {
    Pending& pending = closed.sequences[i];
    if (departed[i]) {
      Departed(pending);
      continue;
    }
    if (!outputs[i].ok()) {
      pending.delivery.Complete(outputs[i].status());
      continue;
    }
    ItemResult result;
    result.outputs = *std::move(outputs[i]);
    result.tokens = pending.tokens;
    result.timing = timing;
    result.timing.queue = closed.closed - pending.enqueued;
    const absl::Status session = AddSession(pending.item, result);
    if (pending.delivery.Abandoned()) metrics_.Wasted(pending.tokens);
    if (session.ok()) {
      pending.delivery.Complete(std::move(result));
    } else {
      pending.delivery.Complete(session);
    }
  }
}

// Adds to the result where the session of the chunk stands now.
absl::Status BatchDelivery::AddSession(const Item& item, ItemResult& result) {
  if (item.session == nullptr) return absl::OkStatus();
  result.position = item.session->position();
  if (!item.chunk->save) return absl::OkStatus();
  auto saved = Guarded("the session", [&] { return model_.Save(*item.session); });
  if (!saved.ok()) return saved.status();
  result.session = *std::move(saved);
  return absl::OkStatus();
}

void BatchDelivery::Failure(ClosedBatch& closed, const absl::Status& status) {
  for (Pending& pending : closed.sequences) {
    if (absl::IsCancelled(status)) {
      Departed(pending);
      continue;
    }
    pending.delivery.Complete(status);
  }
  if (absl::IsCancelled(status)) return;
  Failed& failed = failed_[std::string(status.message())];
  failed.sequences += std::ssize(closed.sequences);
  for (const Pending& pending : closed.sequences) {
    failed.requests.insert(pending.origin->request_id);
  }
}

void BatchDelivery::LogFailures() {
  for (const auto& [error, failed] : failed_) {
    std::string requests;
    for (const std::string& id : failed.requests) requests += (requests.empty() ? "" : ",") + id;
    Log(LogLevel::kError, "forward pass failed",
        {{"request_id", requests}, {"sequences", failed.sequences}, {"error", error}});
  }
  failed_.clear();
}

void BatchDelivery::Departed(Pending& pending) {
  metrics_.Abandoned(AbandonStage::kBatch);
  pending.delivery.Complete(
      pending.deadline <= clock_.Now()
          ? DeadlinePassed()
          : absl::CancelledError("the caller left while the sequence was computed"));
}

}  // namespace linserve
