#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/signature.h"

namespace linserve {

// Between the tensors of a whole batch, laid out as the Python package has them (batch first,
// unless the signature says otherwise), and single sequences.

// Whether an input of this name tells true lengths: "lengths", or "lengths.m" along axis m.
bool IsLengths(const std::string& name);

// A file of a whole batch: its tensors input.<argument>, without the prefix, and the true lengths
// of padded sequences: input.lengths along the first axis of the first input, input.lengths.m along
// axis m. Other tensors are ignored.
struct PackageBatch {
  TensorMap inputs;
  std::map<char, Tensor> lengths;  // by the letter of the axis

  // INVALID_ARGUMENT if lengths are given of an axis that the model does not have.
  static absl::StatusOr<PackageBatch> From(const Signature& signature, const TensorMap& file);

  // The padded length along each axis whose true lengths are given.
  std::map<char, int64_t> PaddedLengths(const Signature& signature) const;
};

// Cuts the batch into its sequences. INVALID_ARGUMENT names the tensor.
absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature, const PackageBatch& batch);

// A hint for the user where the batch is padded along one axis and, as far as can be seen, along
// another one, too, whose true lengths are not given; empty if there is nothing to say.
std::string HintOfPadding(const Signature& signature, const PackageBatch& batch);

// Stacks results as the package has them, with zeros past each sequence's own lengths, and up to
// those in `padded` along the first axis.
TensorMap JoinBatch(const Signature& signature, const std::vector<TensorMap>& results,
                    const std::map<char, int64_t>& padded);

}  // namespace linserve
