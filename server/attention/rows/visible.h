#pragma once

#include <ATen/core/Tensor.h>

namespace linserve {

// Says which keys a query attends to.
struct Visible {
  at::Tensor mask{};    // BOOL [..., m], true = visible, the same to all queries; undefined: all
  bool causal = false;  // key j is visible to queries i >= j only
};

}  // namespace linserve
