#include <utility>

#include "client/files/inputs.h"
#include "core/sequence/package_layout.h"

namespace linserve {
namespace {

Tensor RowOf(const Tensor& array, int64_t row) {
  Shape shape(array.shape().begin() + 1, array.shape().end());
  return array.Rows(row, row + 1).Reshaped(std::move(shape));
}

// Cuts the `input.<argument>` of a whole batch as the model's signature says.
absl::StatusOr<InputSequences> SplitBatched(const TensorMap& tensors, const Signature& signature,
                                            const std::string& file) {
  const auto batch = PackageBatch::From(signature, tensors);
  if (!batch.ok()) {
    return absl::InvalidArgumentError(file + ": " + std::string(batch.status().message()));
  }
  auto items = SplitBatch(signature, *batch);
  if (!items.ok()) {
    return absl::InvalidArgumentError(file + ": " + std::string(items.status().message()));
  }
  InputSequences sequences;
  for (Item& item : *items) {
    sequences.push_back({std::to_string(sequences.size()), {}, std::move(item.inputs), {}});
  }
  return sequences;
}

}  // namespace

InputLimits InputLimits::Of(const Signature& signature) {
  InputLimits limits;
  const InputSpec* x = signature.FindInput("x");
  if (x == nullptr) return limits;
  limits.vocabulary = x->kind == InputKind::kToken ? x->vocabulary : 0;
  limits.rank = x->axes.size();
  if (!x->axes.empty()) limits.longest = LongestFor(signature, Item(), x->axes[0].letter);
  return limits;
}

absl::StatusOr<InputSequences> SplitArray(const Tensor& array, const InputLimits& limits,
                                          const std::string& name) {
  InputSequences sequences;
  const size_t rank = array.shape().size();
  if (rank == limits.rank) {
    sequences.push_back({"0", {}, {{"x", array}}, {}});
    return sequences;
  }
  if (rank != limits.rank + 1) {
    return absl::InvalidArgumentError(name + ": an array of shape " + ToString(array.shape()) +
                                      ", expected " + std::to_string(limits.rank) +
                                      " axes for one sequence or " +
                                      std::to_string(limits.rank + 1) + " for many");
  }
  // Otherwise a few bytes claim any number of sequences.
  if (array.shape()[0] > CheckedElementCount(array.shape()).value_or(0)) {
    return absl::InvalidArgumentError(name + ": an array of shape " + ToString(array.shape()) +
                                      " has empty sequences, expected each to have a row");
  }
  for (int64_t row = 0; row < array.shape()[0]; ++row) {
    sequences.push_back({std::to_string(row), {}, {{"x", RowOf(array, row)}}, {}});
  }
  return sequences;
}

absl::StatusOr<InputSequences> SplitTensors(const TensorMap& tensors, const InputOptions& options,
                                            const std::string& name) {
  if (options.batched) return SplitBatched(tensors, options.signature, name);
  InputSequences sequences;
  for (const auto& [id, tensor] : tensors) sequences.push_back({id, {}, {{"x", tensor}}, {}});
  return sequences;
}

}  // namespace linserve
