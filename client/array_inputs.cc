#include <utility>

#include "client/inputs.h"

namespace linserve {
namespace {

constexpr std::string_view kPrefix = "input.";

Tensor RowOf(const Tensor& array, int64_t row) {
  Shape shape(array.shape().begin() + 1, array.shape().end());
  return array.Rows(row, row + 1).Reshaped(std::move(shape));
}

struct BatchedInputs {
  std::map<std::string, Tensor> arguments;
  std::vector<int64_t> lengths;  // empty: every sequence is as long as its row
  int64_t size = 0;
};

absl::Status BatchError(const std::string& file, const std::string& tensor, const Tensor& value,
                        const std::string& expected) {
  return absl::InvalidArgumentError(file + ": '" + tensor + "' has shape " +
                                    ToString(value.shape()) + ", expected " + expected);
}

absl::StatusOr<BatchedInputs> FindArguments(const TensorMap& tensors, const std::string& file) {
  BatchedInputs inputs;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(kPrefix)) continue;
    if (name == "input.lengths") continue;
    if (tensor.shape().empty()) return BatchError(file, name, tensor, "a leading batch axis");
    if (inputs.arguments.empty()) inputs.size = tensor.shape()[0];
    if (tensor.shape()[0] != inputs.size) {
      return BatchError(file, name, tensor,
                        "the leading axis of the others, " + std::to_string(inputs.size));
    }
    inputs.arguments[name.substr(kPrefix.size())] = tensor;
  }
  if (inputs.arguments.empty()) {
    return absl::InvalidArgumentError(file + ": no tensor is named 'input.<argument>'");
  }
  if (auto found = tensors.find("input.lengths"); found != tensors.end()) {
    const Tensor& lengths = found->second;
    if (!IsInteger(lengths.dtype()) || lengths.shape() != Shape{inputs.size}) {
      return BatchError(file, found->first, lengths,
                        "integers of shape " + ToString(Shape{inputs.size}));
    }
    inputs.lengths.resize(static_cast<size_t>(inputs.size));
    ConvertToInt64(lengths.dtype(), lengths.bytes(), inputs.size, inputs.lengths.data());
  }
  return inputs;
}

// Row `row` of every argument. Those as long as `x` are cut to the sequence's true length.
InputSequence SequenceOf(const BatchedInputs& inputs, int64_t row) {
  InputSequence sequence;
  sequence.id = std::to_string(row);
  for (const auto& [name, array] : inputs.arguments) sequence.inputs[name] = RowOf(array, row);
  if (inputs.lengths.empty()) return sequence;
  const auto x = sequence.inputs.find("x");
  const Tensor& longest = x == sequence.inputs.end() ? sequence.inputs.begin()->second : x->second;
  const int64_t padded = longest.shape().empty() ? 0 : longest.shape()[0];
  const int64_t length = inputs.lengths[static_cast<size_t>(row)];
  if (length < 1 || length > padded) {
    sequence.inputs.clear();
    sequence.status = absl::InvalidArgumentError(
        "sequence " + sequence.id + ": 'input.lengths' says " + std::to_string(length) +
        ", expected 1 to " + std::to_string(padded));
    return sequence;
  }
  for (auto& [name, tensor] : sequence.inputs) {
    if (!tensor.shape().empty() && tensor.shape()[0] == padded) tensor = tensor.Rows(0, length);
  }
  return sequence;
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
  for (int64_t row = 0; row < array.shape()[0]; ++row) {
    sequences.push_back({std::to_string(row), {}, {{"x", RowOf(array, row)}}, {}});
  }
  return sequences;
}

absl::StatusOr<InputSequences> SplitTensors(const TensorMap& tensors, const InputOptions& options,
                                            const std::string& name) {
  InputSequences sequences;
  if (!options.batched) {
    for (const auto& [id, tensor] : tensors) sequences.push_back({id, {}, {{"x", tensor}}, {}});
    return sequences;
  }
  const auto inputs = FindArguments(tensors, name);
  if (!inputs.ok()) return inputs.status();
  for (int64_t row = 0; row < inputs->size; ++row) sequences.push_back(SequenceOf(*inputs, row));
  return sequences;
}

}  // namespace linserve
