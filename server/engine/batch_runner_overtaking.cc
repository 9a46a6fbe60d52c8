#include <algorithm>
#include <utility>

#include "engine/batch_runner.h"

// The part of BatchRunner that lets short sequences overtake a long one.
namespace linserve {
namespace {

// What overtakes a long pass has at most this part of its longest sequence's rows, and of the time
// that the pass takes: once when it begins, and once more until it ends. So the pass has four
// fifths of the thread.
constexpr int64_t kPartOfOthers = 8;

}  // namespace

// Returns how many rows of others may go before the rest of the pass.
int64_t BatchRunner::RowsAhead(const Running& running) const {
  const Progress& progress = running.progress;
  int64_t longest = 0;
  for (const Pending& pending : running.closed.sequences) {
    longest = std::max(longest, pending.unit ? progress.rows : pending.cost);
  }
  // A pass whose speed is not known yet is long once it has taken so long.
  const auto whole = std::max(speed_.TimeFor(running.tokens), progress.forward);
  if (longest <= overtaking_.long_rows || whole <= kLongPass) return 0;
  const auto left = (whole + progress.forward) / kPartOfOthers - progress.overtaken;
  const double rows = static_cast<double>(progress.rows) * static_cast<double>(left.count()) /
                      static_cast<double>(whole.count());
  return std::clamp<int64_t>(static_cast<int64_t>(rows), 0, longest / kPartOfOthers);
}

void BatchRunner::LetOvertake(Running& running) {
  // A device was asked for all of the long batch by now, so that nothing can overtake it.
  if (model_.asynchronous() || !overtaking_.next) return;
  // What is far shorter than those who overtake has its turn between their slices, too.
  BatchRunner between(model_, padder_, metrics_, clock_, speed_, overtaking_, on_progress_);
  while (const int64_t most = RowsAhead(running)) {
    auto batch = overtaking_.next(most);
    if (!batch) return;
    const TimePoint start = clock_.Now();
    between.Run(*std::move(batch));
    running.progress.overtaken += clock_.Now() - start;
  }
}

}  // namespace linserve
