#include "batching/decide.h"

#include <algorithm>

namespace linserve {
namespace {

// Says what keeps the batch from growing.
enum class Bound : uint8_t { kNothing, kBudget, kOtherKey };

struct Gathered {
  std::vector<size_t> take;
  Bound bound = Bound::kNothing;
};

Gathered Gather(const BatchPolicy& policy, const std::vector<Waiting>& view) {
  Gathered gathered;
  int64_t rows = 0;
  for (size_t i = 0; i < view.size(); ++i) {
    if (view[i].key != view[0].key) {
      if (gathered.bound == Bound::kNothing) gathered.bound = Bound::kOtherKey;
      continue;
    }
    const bool fits =
        gathered.take.empty() || (!view[i].alone && rows + view[i].rows <= policy.max_tokens);
    if (!fits) {
      gathered.bound = Bound::kBudget;
      continue;
    }
    gathered.take.push_back(i);
    rows += view[i].rows;
    if (view[i].alone || rows >= policy.max_tokens ||
        static_cast<int64_t>(gathered.take.size()) >= policy.max_sequences) {
      gathered.bound = Bound::kBudget;
      break;
    }
  }
  return gathered;
}

}  // namespace

Decision Decide(const BatchPolicy& policy, const std::vector<Waiting>& view, TimePoint now,
                bool draining) {
  Decision decision;
  if (view.empty()) return decision;
  auto [take, bound] = Gather(policy, view);
  // The sequence that waits longest ends the wait of all, even if it is not its turn: the turn
  // comes sooner.
  TimePoint oldest = view[0].enqueued;
  for (const Waiting& waiting : view) oldest = std::min(oldest, waiting.enqueued);
  const TimePoint patience_ends = oldest + policy.max_delay;
  const bool at_once = policy.max_delay.count() == 0 || std::ranges::any_of(view, &Waiting::waited);
  if (bound == Bound::kBudget) {
    decision.reason = CloseReason::kFull;
  } else if (draining) {
    decision.reason = CloseReason::kDrain;
  } else if (at_once) {
    decision.reason = bound == Bound::kOtherKey ? CloseReason::kLength : CloseReason::kIdle;
  } else if (now >= patience_ends) {
    decision.reason = CloseReason::kDelay;
  } else {
    decision.wait_until = patience_ends;
    return decision;
  }
  decision.take = std::move(take);
  return decision;
}

}  // namespace linserve
