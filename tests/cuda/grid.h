#pragma once

#include "cuda/kernels/lanes.h"

namespace linserve::cuda {

// Calls block(at) for each block of a grid, as a GPU would in no order. Neither are its warps in
// any: each second block goes through them from the last to the first, and in the next call the
// others do. So a race makes numbers wrong.
template <typename Block>
void ForGrid(const BlockIndex& grid, const Block& block) {
  static thread_local bool first_of_call = false;
  first_of_call = !first_of_call;
  last_first = first_of_call;
  for (BlockIndex at{0, 0, 0}; at.z < grid.z; ++at.z) {
    for (at.y = 0; at.y < grid.y; ++at.y) {
      for (at.x = 0; at.x < grid.x; ++at.x) {
        block(at);
        last_first = !last_first;
      }
    }
  }
  last_first = false;
}

}  // namespace linserve::cuda
