#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace linserve {

// Tells what each of several that share something would have had by now, if their shares were
// equal (weighted fair queuing, A. Demers et al., SIGCOMM 1989). Who has had the least is next.
class VirtualTime {
 public:
  // Returns what one counts as having had that joins the others now, and had `had` when it left
  // them. It is a little less than the others have had, so that it need not wait for all of them
  // before its first turn; and not much less, so that those who come again and again do not keep
  // the others waiting for ever.
  std::chrono::nanoseconds Join(std::chrono::nanoseconds had) const {
    return std::max(had, now_ - kHeadStart);
  }

  // Says that one of so many had so much time.
  void Pass(std::chrono::nanoseconds time, size_t sharers) {
    now_ += time / static_cast<int64_t>(std::max<size_t>(sharers, 1));
  }

 private:
  static constexpr std::chrono::milliseconds kHeadStart{100};

  std::chrono::nanoseconds now_{0};
};

}  // namespace linserve
