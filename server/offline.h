#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "engine/engine.h"

namespace linserve {

// The engine without a server: whole batches of padded tensors in and out, as Python has them.

// Cuts tensors with a leading batch axis, named as the signature names its inputs, into items.
// `lengths`, if not null, holds the true length of each sequence along the first lettered axis.
// INVALID_ARGUMENT names the tensor.
absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature, const TensorMap& inputs,
                                             const Tensor* lengths);

// Runs all items through the engine; `progress` is told how many are done. The first failure is
// the result.
absl::StatusOr<std::vector<TensorMap>> RunAll(
    Engine& engine, std::vector<Item> items,
    const std::function<void(size_t done, size_t all)>& progress);

// Stacks results of lengths up to `longest` along a leading batch axis, zeros past each length.
TensorMap JoinBatch(const std::vector<TensorMap>& results, int64_t longest);

}  // namespace linserve
