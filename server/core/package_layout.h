#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/signature.h"

namespace linserve {

// Between the tensors of a whole batch, laid out as the Python package has them (batch first,
// unless the signature says otherwise), and single sequences.

// Cuts tensors, named as the signature names its inputs, into items. `lengths`, if not null, holds
// the true length of each sequence along the first axis of the first input. INVALID_ARGUMENT names
// the tensor.
absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature, const TensorMap& inputs,
                                             const Tensor* lengths);

// The padded length of the batch's sequences, along the first axis of the first input.
int64_t PaddedLength(const Signature& signature, const TensorMap& inputs);

// Stacks results as the package has them, with zeros past each sequence's own lengths, and up to
// `longest` along the axis of the first input.
TensorMap JoinBatch(const Signature& signature, const std::vector<TensorMap>& results,
                    int64_t longest);

}  // namespace linserve
