#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "models/network/network.h"

namespace linserve {

// Is a pass through layers each of which changes the rows [rows, dim] in place, a step each. Beside
// them all read the same context. What comes of the rows is an heir's matter.
template <typename Layer, typename Context>
class LayerPass : public Pass {
 public:
  // The rows are the pass's own. `layers` must outlive it.
  LayerPass(const std::deque<Layer>& layers, at::Tensor rows, Context context)
      : layers_(layers), rows_(std::move(rows)), context_(std::move(context)) {}

  bool Step() final {
    layers_[next_++].Apply(rows_, context_);
    return next_ < layers_.size();
  }

 protected:
  const at::Tensor& rows() const { return rows_; }
  at::Tensor Rows(int64_t begin, int64_t end) const { return rows_.narrow(0, begin, end - begin); }
  const Context& context() const { return context_; }

 private:
  const std::deque<Layer>& layers_;
  at::Tensor rows_;
  Context context_;
  size_t next_ = 0;
};

}  // namespace linserve
