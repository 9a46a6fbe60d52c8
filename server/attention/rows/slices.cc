#include "attention/rows/slices.h"

#include <algorithm>
#include <utility>

#include "core/threads/side_by_side.h"

namespace linserve {
namespace {

thread_local SliceScope* current_scope = nullptr;

// Points to the scope of this thread, unless it is one of several that compute side by side.
SliceScope* Current() { return IsSideBySide() ? nullptr : current_scope; }

// What is computed meanwhile is not part of this thread's scope.
struct Suspended {
  Suspended() : scope(std::exchange(current_scope, nullptr)) {}
  ~Suspended() { current_scope = scope; }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

  SliceScope* const scope;
};

}  // namespace

SliceScope::SliceScope(int64_t rows, Between between)
    : rows_(rows), between_(std::move(between)), outer_(std::exchange(current_scope, this)) {}

SliceScope::~SliceScope() { current_scope = outer_; }

void SliceScope::Pass(int64_t rows, bool done) {
  passed_ += rows;
  if (done) done_ += rows;
  if (passed_ < rows_) return;
  passed_ = 0;
  const Suspended suspended;
  between_(std::exchange(done_, 0));
}

void RowsRead(int64_t rows) {
  if (SliceScope* scope = Current()) scope->Pass(rows, /*done=*/false);
}

void RowsDone(int64_t rows) {
  if (SliceScope* scope = Current()) scope->Pass(rows, /*done=*/true);
}

void ForSlices(int64_t rows, const std::function<void(int64_t begin, int64_t count)>& function) {
  const SliceScope* scope = Current();
  const int64_t most = scope == nullptr ? rows : std::min(rows, scope->rows_);
  for (int64_t begin = 0; begin < rows; begin += most) {
    const int64_t count = std::min(most, rows - begin);
    function(begin, count);
    RowsDone(count);
  }
}

}  // namespace linserve
