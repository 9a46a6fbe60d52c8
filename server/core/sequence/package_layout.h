#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sequence/signature.h"

namespace linserve {

// This header cuts the tensors of a whole batch, laid out as the Python package has them (batch
// first, unless the signature says otherwise), into single sequences; package_results.h is the way
// back.

// Returns whether an input of this name tells true lengths: "lengths", or "lengths.m" along axis m.
bool IsLengths(const std::string& name);

// Holds a file of a whole batch: its tensors input.<argument>, without the prefix, and the true
// lengths of padded sequences. input.lengths holds them along the first axis of the first input,
// input.lengths.m along axis m. Other tensors are ignored.
struct PackageBatch {
  TensorMap inputs;
  std::map<char, Tensor> lengths;  // by the letter of the axis

  // Takes the batch out of a file's tensors. Returns INVALID_ARGUMENT if lengths are given of an
  // axis that the model does not have.
  static absl::StatusOr<PackageBatch> From(const Signature& signature, const TensorMap& file);

  // Returns the padded length along each axis whose true lengths are given.
  std::map<char, int64_t> PaddedLengths(const Signature& signature) const;

  // Returns how many bytes SplitBatch() copies at most. What all sequences share is cropped once
  // for each length.
  int64_t CopiedBytes(const Signature& signature) const;
};

// Counts the sequences that the inputs of a batch hold: at most as many as their elements, of which
// each sequence has one at least. INVALID_ARGUMENT names the tensor. A caller that bounds sequences
// asks this before SplitBatch() makes them.
absl::StatusOr<int64_t> CountSequences(const Signature& signature, const TensorMap& inputs);

// Cuts the batch into its sequences. INVALID_ARGUMENT names the tensor.
absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature, const PackageBatch& batch);

// Returns a hint for the user where the batch is padded along one axis and, as far as can be seen,
// also along another one, whose true lengths are not given. Empty if there is nothing to say.
std::string HintOfPadding(const Signature& signature, const PackageBatch& batch);

}  // namespace linserve
