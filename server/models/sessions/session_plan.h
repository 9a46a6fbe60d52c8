#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace linserve {

// Is one tensor of a session's state, F32, which a layer reads and rewrites with each chunk.
struct StateSlot {
  std::vector<int64_t> shape;  // of one sequence
  double initial = 0;          // of every element, before the first row
};

// Says what a network keeps of a sequence between two chunks, in the order in which its layers come
// to it; or, in words for a user, why it cannot.
struct SessionPlan {
  static constexpr int64_t kMostElements = int64_t{1} << 58;

  std::vector<StateSlot> slots;
  std::string refusal;  // empty: it can

  static SessionPlan Refused(std::string why) { return {{}, std::move(why)}; }
  static SessionPlan RefusedByProjections() {
    return Refused("its attention projects the whole input along its length");
  }

  // At most kMostElements, which no memory holds: a configuration may ask for any product.
  int64_t elements() const {
    double sum = 0;
    for (const StateSlot& slot : slots) {
      double size = 1;
      for (const int64_t axis : slot.shape) size *= static_cast<double>(axis);
      sum += size;
    }
    return static_cast<int64_t>(std::min(sum, static_cast<double>(kMostElements)));
  }
};

}  // namespace linserve
