#pragma once

#include "cuda/lanes.h"

namespace linserve::cuda {

// Calls block(at) for each block of a grid, as a GPU would in no order.
template <typename Block>
void ForGrid(const BlockIndex& grid, const Block& block) {
  for (BlockIndex at{0, 0, 0}; at.z < grid.z; ++at.z) {
    for (at.y = 0; at.y < grid.y; ++at.y) {
      for (at.x = 0; at.x < grid.x; ++at.x) block(at);
    }
  }
}

}  // namespace linserve::cuda
