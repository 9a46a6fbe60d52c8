#include "core/package_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/quote.h"

namespace linserve {
namespace {

absl::StatusOr<std::vector<int64_t>> ReadLengths(const Tensor& lengths, int64_t batch,
                                                 int64_t longest) {
  if (!IsInteger(lengths.dtype()) || lengths.shape() != Shape{batch}) {
    return absl::InvalidArgumentError("input.lengths must hold " + std::to_string(batch) +
                                      " integers, one a sequence");
  }
  std::vector<int64_t> values(static_cast<size_t>(batch));
  ConvertToInt64(lengths.dtype(), lengths.bytes(), batch, values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 1 || values[i] > longest) {
      return absl::InvalidArgumentError("input.lengths: sequence " + std::to_string(i) + " has " +
                                        std::to_string(values[i]) + ", expected 1 to " +
                                        std::to_string(longest));
    }
  }
  return values;
}

// Where an input of a whole batch has its sequences, and how many there are. A tensor that no
// input is named after is cut like any: Validate() says what is wrong with it.
BatchAxis BatchAxisOf(const Signature& signature, const std::string& name, const Tensor& tensor) {
  const InputSpec* spec = signature.FindInput(name);
  if (spec == nullptr) return BatchAxis::kFirst;
  if (spec->batch_axis != BatchAxis::kFolded) return spec->batch_axis;
  const size_t rank = tensor.shape().size();
  if (rank == spec->axes.size()) return BatchAxis::kFolded;
  return rank < spec->axes.size() ? BatchAxis::kNone : BatchAxis::kFirst;
}

// The number of sequences that the inputs hold.
absl::StatusOr<int64_t> CountSequences(const Signature& signature, const TensorMap& inputs) {
  for (const InputSpec& spec : signature.inputs) {
    const auto input = inputs.find(spec.name);
    if (input == inputs.end()) continue;
    const BatchAxis axis = BatchAxisOf(signature, spec.name, input->second);
    if (axis != BatchAxis::kFirst && axis != BatchAxis::kSecond) continue;
    const size_t at = axis == BatchAxis::kFirst ? 0 : 1;
    if (input->second.shape().size() > at) return input->second.shape()[at];
    return absl::InvalidArgumentError("input." + spec.name + " is " +
                                      ToString(input->second.shape()) + ", expected a batch axis");
  }
  std::string given;
  for (const auto& [name, tensor] : inputs) given += "input." + name + ", ";
  std::string expected;
  for (const InputSpec& spec : signature.inputs) {
    expected += (expected.empty() ? "" : ", ") + Quoted(spec.name);
  }
  return absl::InvalidArgumentError(given + "no tensor is named input.<argument> after an input " +
                                    "of this model, expected input. and one of " + expected);
}

// Column `index` of [length, batch, ...]: [length, ...].
Tensor ColumnOf(const Tensor& tensor, int64_t index) {
  Shape shape = tensor.shape();
  shape.erase(shape.begin() + 1);
  auto [column, bytes] = Tensor::Allocate(tensor.dtype(), shape);
  const size_t row_bytes = shape[0] > 0 ? column.byte_size() / static_cast<size_t>(shape[0]) : 0;
  const auto batch = static_cast<size_t>(tensor.shape()[1]);
  for (size_t row = 0; row < static_cast<size_t>(shape[0]); ++row) {
    const std::byte* source =
        tensor.bytes() + (row * batch + static_cast<size_t>(index)) * row_bytes;
    std::memcpy(bytes + row * row_bytes, source, row_bytes);
  }
  return column;
}

// The part of `tensor` that belongs to sequence `index` of `batch`.
absl::StatusOr<Tensor> PartOf(const Tensor& tensor, BatchAxis axis, int64_t index, int64_t batch) {
  const Shape& shape = tensor.shape();
  switch (axis) {
    case BatchAxis::kNone:
      return tensor;
    case BatchAxis::kSecond:
      if (shape.size() < 2 || shape[1] != batch) break;
      return ColumnOf(tensor, index);
    case BatchAxis::kFolded: {
      if (shape.empty() || shape[0] % batch != 0) break;
      const int64_t rows = shape[0] / batch;
      return tensor.Rows(index * rows, (index + 1) * rows);
    }
    case BatchAxis::kFirst: {
      if (shape.empty() || shape[0] != batch) break;
      const Tensor row = tensor.Rows(index, index + 1);
      return row.Reshaped(Shape(shape.begin() + 1, shape.end()));
    }
  }
  return absl::InvalidArgumentError(
      "it is " + ToString(shape) + ", expected " + std::to_string(batch) + " sequences along " +
      (axis == BatchAxis::kSecond ? "the second" : "the first") + " axis");
}

bool IsLaidOutBy(const Signature& signature, const std::string& name, char letter) {
  const InputSpec* spec = signature.FindInput(name);
  return spec != nullptr && !spec->axes.empty() && spec->axes[0].letter == letter;
}

// Copies `source` into the corner of a larger tensor of as many axes.
void CopyIntoCorner(const std::byte* source, const int64_t* shape, std::byte* target,
                    const int64_t* target_shape, size_t axes, size_t element_bytes) {
  if (axes == 0) {
    std::memcpy(target, source, element_bytes);
    return;
  }
  size_t row_bytes = element_bytes;
  size_t target_row_bytes = element_bytes;
  for (size_t axis = 1; axis < axes; ++axis) {
    row_bytes *= static_cast<size_t>(shape[axis]);
    target_row_bytes *= static_cast<size_t>(target_shape[axis]);
  }
  if (row_bytes == target_row_bytes) {  // no axis is larger, so that the rows are alike
    std::memcpy(target, source, row_bytes * static_cast<size_t>(shape[0]));
    return;
  }
  for (int64_t row = 0; row < shape[0]; ++row) {
    CopyIntoCorner(source, shape + 1, target, target_shape + 1, axes - 1, element_bytes);
    source += row_bytes;
    target += target_row_bytes;
  }
}

// Stacks one output of all results along a new first axis, zeros where a result is smaller.
Tensor Stack(const std::vector<const Tensor*>& parts, int64_t longest) {
  Shape largest = parts[0]->shape();
  if (!largest.empty()) largest[0] = std::max(largest[0], longest);
  for (const Tensor* part : parts) {
    for (size_t axis = 0; axis < largest.size(); ++axis) {
      largest[axis] = std::max(largest[axis], part->shape()[axis]);
    }
  }
  Shape shape = largest;
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  auto [tensor, bytes] = Tensor::Allocate(parts[0]->dtype(), shape);
  const size_t stride = tensor.byte_size() / parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    CopyIntoCorner(parts[i]->bytes(), parts[i]->shape().data(), bytes + i * stride, largest.data(),
                   largest.size(), ByteSize(tensor.dtype()));
  }
  return tensor;
}

// [batch, length, ...] -> [length, batch, ...]
Tensor LengthFirst(const Tensor& tensor) {
  Shape shape = tensor.shape();
  std::swap(shape[0], shape[1]);
  auto [swapped, bytes] = Tensor::Allocate(tensor.dtype(), shape);
  const auto length = static_cast<size_t>(shape[0]);
  const auto batch = static_cast<size_t>(shape[1]);
  const size_t row_bytes = tensor.byte_size() / std::max<size_t>(length * batch, 1);
  for (size_t i = 0; i < batch; ++i) {
    for (size_t row = 0; row < length; ++row) {
      std::memcpy(bytes + (row * batch + i) * row_bytes,
                  tensor.bytes() + (i * length + row) * row_bytes, row_bytes);
    }
  }
  return swapped;
}

}  // namespace

absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature, const TensorMap& inputs,
                                             const Tensor* lengths) {
  const auto batch = CountSequences(signature, inputs);
  if (!batch.ok()) return batch.status();
  const char letter = signature.inputs[0].axes[0].letter;
  std::vector<int64_t> true_lengths;
  if (lengths != nullptr) {
    auto read = ReadLengths(*lengths, *batch, PaddedLength(signature, inputs));
    if (!read.ok()) return read.status();
    true_lengths = *std::move(read);
  }
  std::vector<Item> items(static_cast<size_t>(*batch));
  for (const auto& [name, tensor] : inputs) {
    const BatchAxis axis = BatchAxisOf(signature, name, tensor);
    const bool cropped = !true_lengths.empty() && IsLaidOutBy(signature, name, letter);
    for (int64_t i = 0; i < *batch; ++i) {
      const auto at = static_cast<size_t>(i);
      auto part = PartOf(tensor, axis, i, *batch);
      if (!part.ok()) {
        return absl::InvalidArgumentError("input." + name + ": " +
                                          std::string(part.status().message()));
      }
      if (cropped && !part->shape().empty() && part->shape()[0] >= true_lengths[at]) {
        *part = part->Rows(0, true_lengths[at]);
      }
      items[at].inputs[name] = *std::move(part);
    }
  }
  return items;
}

int64_t PaddedLength(const Signature& signature, const TensorMap& inputs) {
  const InputSpec& first = signature.inputs[0];
  const auto x = inputs.find(first.name);
  if (x == inputs.end() || x->second.shape().size() < 2) return 0;
  return x->second.shape()[first.batch_axis == BatchAxis::kSecond ? 0 : 1];
}

TensorMap JoinBatch(const Signature& signature, const std::vector<TensorMap>& results,
                    int64_t longest) {
  TensorMap joined;
  if (results.empty()) return joined;
  const char letter = signature.inputs[0].axes[0].letter;
  for (const auto& [name, first] : results[0]) {
    std::vector<const Tensor*> parts;
    for (const TensorMap& result : results) parts.push_back(&result.at(name));
    const OutputSpec* spec = signature.FindOutput(name);
    const bool ragged = spec != nullptr && !spec->axes.empty() && spec->axes[0].letter == letter;
    joined[name] = Stack(parts, ragged ? longest : 0);
    if (spec != nullptr && spec->batch_axis == BatchAxis::kSecond) {
      joined[name] = LengthFirst(joined[name]);
    }
  }
  return joined;
}

}  // namespace linserve
