#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace linserve {

// The tensors [s, ...], of one type and as many axes, as one [parts, largest s, ...], with zeros
// where a part is smaller; its second axis is at least `longest`. Shares the bytes of parts that
// lie in memory like that already. REQUIRES: at least one part.
Tensor Stack(const std::vector<const Tensor*>& parts, int64_t longest);

// The tensors [s, ...], alike but for s, one after another: [sum of s, ...]. A single one is passed
// on without a copy. REQUIRES: at least one, and several have axes.
Tensor Concatenate(const std::vector<Tensor>& parts);

// The corner of `tensor` that has this shape. REQUIRES: as many axes, none of them longer.
Tensor Corner(const Tensor& tensor, const Shape& shape);

}  // namespace linserve
