#pragma once

#include <vector>

#include "core/sequence/batch.h"
#include "core/sequence/item.h"
#include "core/sequence/signature.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Lays the items' tensors of one input out as one tensor: F32, I64 or BOOL by the input's kind, or
// floats of 16 bits or I32 where `allocate` answers a wish for F32 or I64 with those. Rows that
// belong to no item are zeros. Much of it is copied by several threads.
Tensor Gather(const InputSpec& spec, const AxisLayout& layout,
              const std::vector<const Item*>& items, const TensorAllocator& allocate);

}  // namespace linserve
