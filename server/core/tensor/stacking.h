#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace linserve {

// Stacks tensors [s, ...], of one type and as many axes, into one [parts, largest s, ...], with
// zeros where a part is smaller; its second axis is at least `longest`. Shares the bytes of parts
// that lie in memory like that already. REQUIRES: at least one part.
Tensor Stack(const std::vector<const Tensor*>& parts, int64_t longest);

// Returns the shape of what Stack() returns.
Shape StackedShape(const std::vector<const Tensor*>& parts, int64_t longest);

// Joins tensors [s, ...], alike but for s, one after another into [sum of s, ...]. A single one is
// passed on without a copy. REQUIRES: at least one part; several have axes.
Tensor Concatenate(const std::vector<Tensor>& parts);

// Returns the corner of `tensor` that has this shape. REQUIRES: as many axes, none of them longer.
Tensor Corner(const Tensor& tensor, const Shape& shape);

}  // namespace linserve
