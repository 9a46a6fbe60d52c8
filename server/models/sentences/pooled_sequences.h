#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "attention/rows/placed_layout.h"
#include "core/sequence/item.h"

namespace linserve {

// Returns rows [begin, end) of a batch: [end - begin, width].
using RowsOfBatch = std::function<at::Tensor(int64_t begin, int64_t end)>;

// Makes one vector of the rows of each of the sequences [begin, end) of a batch: F32 [end - begin,
// width]. `mask`, BOOL [rows of the batch], says which rows are there; undefined: all. A device is
// asked once for all sequences if it has a kernel and there is no mask.
at::Tensor PoolSequences(const RowsOfBatch& rows, const PlacedLayout& layout,
                         const at::Tensor& mask, int64_t begin, int64_t end, Pooling pooling);

}  // namespace linserve
