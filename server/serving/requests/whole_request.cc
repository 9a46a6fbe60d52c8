#include "serving/requests/whole_request.h"

#include <utility>

#include "core/status/retry_delay.h"
#include "core/threads/guarded.h"

namespace linserve {

absl::Status WholeRequestState::Prepare(const ServedModel& /*model*/,
                                        std::vector<absl::StatusOr<Item>>& items) {
  const MutexLock lock(mutex_);
  results_.resize(items.size());
  unanswered_ = items.size();
  return absl::OkStatus();
}

void WholeRequestState::TakeResult(size_t index, absl::StatusOr<ItemResult> result) {
  std::vector<ItemResult> results;
  absl::Status status = result.status();
  Timing last;
  {
    const MutexLock lock(mutex_);
    if (ended_) return;
    if (result.ok()) {
      last = result->timing;
      results_[index] = *std::move(result);
      if (--unanswered_ > 0) return;
      results = std::move(results_);
    } else if (results_.size() > 1) {
      status = WithPrefix(status, NameOf(index));
    }
    ended_ = true;
  }
  if (status.ok()) {
    answered_ = true;  // before Answer(), after which the caller may be gone
    status = Guarded("the answer", [&] { return Answer(std::move(results), last); });
  }
  if (!status.ok()) Refuse(status);
}

std::string WholeRequestState::NameOf(size_t item) const {
  return "sequence " + std::to_string(item) + " of the batch: ";
}

bool WholeRequestState::Abandoned() const {
  if (CallerLeft()) return true;
  const MutexLock lock(mutex_);
  return ended_;
}

}  // namespace linserve
