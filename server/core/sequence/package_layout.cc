#include "core/sequence/package_layout.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/strings/quote.h"
#include "core/tensor/stacking.h"

namespace linserve {
namespace {

constexpr std::string_view kPrefix = "input.";
constexpr std::string_view kLengths = "lengths";

// Returns the letter of the axis whose lengths input.lengths holds.
char FirstLetter(const Signature& signature) {
  if (signature.inputs.empty() || signature.inputs[0].axes.empty()) return '\0';
  return signature.inputs[0].axes[0].letter;
}

std::string NameOfLengths(const Signature& signature, char letter) {
  const std::string name = std::string(kPrefix) + std::string(kLengths);
  return letter == FirstLetter(signature) ? name : name + "." + letter;
}

std::string Letters(const Signature& signature) {
  std::string letters;
  for (const InputSpec& spec : signature.inputs) {
    for (const Axis& axis : spec.axes) {
      if (axis.letter != '\0' && letters.find(axis.letter) == std::string::npos) {
        letters += axis.letter;
      }
    }
  }
  return letters;
}

// Says where an input of a whole batch has its sequences. A tensor that no input is named after is
// cut like any other: Validate() says what is wrong with it.
BatchAxis BatchAxisOf(const Signature& signature, const std::string& name, const Tensor& tensor) {
  const InputSpec* spec = signature.FindInput(name);
  if (spec == nullptr) return BatchAxis::kFirst;
  if (spec->batch_axis != BatchAxis::kFolded) return spec->batch_axis;
  const size_t rank = tensor.shape().size();
  if (rank == spec->axes.size()) return BatchAxis::kFolded;
  return rank < spec->axes.size() ? BatchAxis::kNone : BatchAxis::kFirst;
}

// Returns column `index` of [length, batch, ...] as [length, ...].
Tensor ColumnOf(const Tensor& tensor, int64_t index) {
  Shape shape = tensor.shape();
  shape.erase(shape.begin() + 1);
  auto [column, bytes] = Tensor::Allocate(tensor.dtype(), shape);
  if (column.elements() == 0) return column;  // however many empty rows it has
  const size_t row_bytes = column.byte_size() / static_cast<size_t>(shape[0]);
  const auto batch = static_cast<size_t>(tensor.shape()[1]);
  for (size_t row = 0; row < static_cast<size_t>(shape[0]); ++row) {
    const std::byte* source =
        tensor.bytes() + (row * batch + static_cast<size_t>(index)) * row_bytes;
    std::memcpy(bytes + row * row_bytes, source, row_bytes);
  }
  return column;
}

// Returns the share of `tensor` that belongs to sequence `index` of `batch`.
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
      "it is " + ToString(shape) + ", expected " +
      (axis == BatchAxis::kFolded ? "a multiple of " : "") + std::to_string(batch) +
      " sequences along " + (axis == BatchAxis::kSecond ? "the second" : "the first") + " axis");
}

// Calls `visit` with the place of each axis of this letter in a tensor of one sequence.
template <typename Visitor>
void ForEachAxis(const InputSpec* spec, const Tensor& tensor, char letter, const Visitor& visit) {
  if (spec == nullptr || tensor.shape().size() > spec->axes.size()) return;
  const size_t left_out = spec->axes.size() - tensor.shape().size();  // by broadcasting
  for (size_t axis = left_out; axis < spec->axes.size(); ++axis) {
    if (spec->axes[axis].letter == letter) visit(axis - left_out);
  }
}

// Returns the padded length of a sequence along this axis; 0 if it has none.
int64_t PaddedLength(const Signature& signature, const Item& item, char letter) {
  int64_t length = 0;
  for (const InputSpec& spec : signature.inputs) {
    const auto input = item.inputs.find(spec.name);
    if (input == item.inputs.end()) continue;
    ForEachAxis(&spec, input->second, letter,
                [&](size_t axis) { length = std::max(length, input->second.shape()[axis]); });
  }
  return length;
}

// Crops what is longer than `length`; Validate() says what is wrong with what is shorter.
Tensor Cropped(const InputSpec* spec, const Tensor& tensor, char letter, int64_t length) {
  Shape shape = tensor.shape();
  ForEachAxis(spec, tensor, letter,
              [&](size_t axis) { shape[axis] = std::min(shape[axis], length); });
  return Corner(tensor, shape);
}

absl::StatusOr<std::vector<int64_t>> ReadLengths(const std::string& name, const Tensor& lengths,
                                                 const std::vector<Item>& items, int64_t longest) {
  const auto batch = static_cast<int64_t>(items.size());
  if (!IsInteger(lengths.dtype()) || lengths.shape() != Shape{batch}) {
    return absl::InvalidArgumentError(name + " must hold " + std::to_string(batch) +
                                      " integers, one a sequence");
  }
  std::vector<int64_t> values(items.size());
  ConvertToInt64(lengths, values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 1 || values[i] > longest) {
      return absl::InvalidArgumentError(name + ": sequence " + std::to_string(i) + " has " +
                                        std::to_string(values[i]) + ", expected 1 to " +
                                        std::to_string(longest));
    }
  }
  return values;
}

absl::Status Crop(const Signature& signature, char letter, const Tensor& lengths,
                  std::vector<Item>& items) {
  if (items.empty()) return absl::OkStatus();
  const auto values = ReadLengths(NameOfLengths(signature, letter), lengths, items,
                                  PaddedLength(signature, items[0], letter));
  if (!values.ok()) return values.status();
  std::map<std::tuple<std::string, const std::byte*, Shape, int64_t>, Tensor> shared;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t length = values->at(i);
    for (auto& [name, tensor] : items[i].inputs) {
      const InputSpec* spec = signature.FindInput(name);
      if (BatchAxisOf(signature, name, tensor) != BatchAxis::kNone) {
        tensor = Cropped(spec, tensor, letter, length);
        continue;
      }
      const auto [cropped, is_new] =
          shared.try_emplace({name, tensor.bytes(), tensor.shape(), length});
      if (is_new) cropped->second = Cropped(spec, tensor, letter, length);
      tensor = cropped->second;
    }
  }
  return absl::OkStatus();
}

int64_t CountDistinct(const Tensor& lengths) {
  if (!IsInteger(lengths.dtype())) return 0;
  std::vector<int64_t> values(static_cast<size_t>(lengths.elements()));
  ConvertToInt64(lengths, values.data());
  return std::ssize(std::set<int64_t>(values.begin(), values.end()));
}

// Returns sequence `index` of `count`, with its padding.
absl::StatusOr<Item> SequenceOf(const Signature& signature, const TensorMap& inputs, int64_t index,
                                int64_t count) {
  Item item;
  for (const auto& [name, tensor] : inputs) {
    auto part = PartOf(tensor, BatchAxisOf(signature, name, tensor), index, count);
    if (!part.ok()) {
      return absl::InvalidArgumentError("input." + name + ": " +
                                        std::string(part.status().message()));
    }
    item.inputs[name] = *std::move(part);
  }
  return item;
}

// Returns the first sequence, whose padded lengths all others have too. Empty if the batch cannot
// be cut.
Item FirstSequence(const Signature& signature, const TensorMap& inputs) {
  const auto count = CountSequences(signature, inputs);
  if (!count.ok() || *count == 0) return {};
  return SequenceOf(signature, inputs, 0, *count).value_or(Item());
}

}  // namespace

bool IsLengths(const std::string& name) {
  return name == kLengths || name.starts_with(std::string(kLengths) + ".");
}

absl::StatusOr<PackageBatch> PackageBatch::From(const Signature& signature, const TensorMap& file) {
  PackageBatch batch;
  for (const auto& [full_name, tensor] : file) {
    if (!full_name.starts_with(kPrefix)) continue;
    const std::string name = full_name.substr(kPrefix.size());
    if (!IsLengths(name)) {
      batch.inputs[name] = tensor;
      continue;
    }
    const std::string letters = Letters(signature);
    const std::string wanted = name == kLengths ? std::string(1, FirstLetter(signature))
                                                : name.substr(kLengths.size() + 1);
    if (wanted.size() != 1 || letters.find(wanted) == std::string::npos) {
      return absl::InvalidArgumentError(full_name + ": the model has no such axis; its axes are " +
                                        Quoted(letters));
    }
    batch.lengths[wanted[0]] = tensor;
  }
  return batch;
}

std::map<char, int64_t> PackageBatch::PaddedLengths(const Signature& signature) const {
  if (lengths.empty()) return {};
  std::map<char, int64_t> padded;
  const Item first = FirstSequence(signature, inputs);
  for (const auto& [letter, tensor] : lengths) {
    padded[letter] = PaddedLength(signature, first, letter);
  }
  return padded;
}

int64_t PackageBatch::CopiedBytes(const Signature& signature) const {
  int64_t bytes = 0;
  for (const auto& [name, part] : FirstSequence(signature, inputs).inputs) {
    const Tensor& whole = inputs.at(name);
    const BatchAxis batch_axis = BatchAxisOf(signature, name, whole);
    const auto size = static_cast<int64_t>(whole.byte_size());
    if (batch_axis == BatchAxis::kSecond) bytes += size;
    int64_t copies = 1;
    for (const auto& [letter, tensor] : lengths) {
      bool crops = false;
      bool copied = false;  // what is cropped along its first axis is not
      ForEachAxis(signature.FindInput(name), part, letter, [&](size_t axis) {
        crops = true;
        copied = copied || axis > 0;
      });
      if (crops && batch_axis == BatchAxis::kNone) {
        copies = std::min(copies * CountDistinct(tensor), tensor.elements());
      }
      if (copied) bytes += copies * size;
    }
  }
  return bytes;
}

absl::StatusOr<int64_t> CountSequences(const Signature& signature, const TensorMap& inputs) {
  for (const InputSpec& spec : signature.inputs) {
    const auto input = inputs.find(spec.name);
    if (input == inputs.end()) continue;
    const Tensor& tensor = input->second;
    const BatchAxis axis = BatchAxisOf(signature, spec.name, tensor);
    if (axis != BatchAxis::kFirst && axis != BatchAxis::kSecond) continue;
    const size_t at = axis == BatchAxis::kFirst ? 0 : 1;
    const auto is = [&] { return "input." + spec.name + " is " + ToString(tensor.shape()); };
    if (tensor.shape().size() <= at) {
      return absl::InvalidArgumentError(is() + ", expected a batch axis");
    }
    const int64_t count = tensor.shape()[at];
    if (count == 0) return absl::InvalidArgumentError(is() + ", which holds no sequences");
    // A sequence has an element at least: thus a count is no larger than the bytes that were sent.
    if (count <= tensor.elements()) return count;
    return absl::InvalidArgumentError(is() + ": its " + std::to_string(count) +
                                      " sequences are empty, expected each to have a row");
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

absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature,
                                             const PackageBatch& batch) {
  const auto count = CountSequences(signature, batch.inputs);
  if (!count.ok()) return count.status();
  std::vector<Item> items;
  for (int64_t i = 0; i < *count; ++i) {
    auto item = SequenceOf(signature, batch.inputs, i, *count);
    if (!item.ok()) return item.status();
    items.push_back(*std::move(item));
  }
  for (const auto& [letter, lengths] : batch.lengths) {
    absl::Status status = Crop(signature, letter, lengths, items);
    if (!status.ok()) return status;
  }
  return items;
}

std::string HintOfPadding(const Signature& signature, const PackageBatch& batch) {
  const Item first = FirstSequence(signature, batch.inputs);
  const auto padded = batch.PaddedLengths(signature);
  std::string hint;
  for (const char letter : Letters(signature)) {
    if (padded.contains(letter)) continue;
    const int64_t length = PaddedLength(signature, first, letter);
    if (length == 0) continue;
    const auto other = std::find_if(padded.begin(), padded.end(),
                                    [&](const auto& entry) { return entry.second == length; });
    if (other == padded.end()) continue;
    hint += (hint.empty() ? "" : "\n") + NameOfLengths(signature, other->first) +
            " crops what is laid out along " + other->first + "; axis " + letter +
            ", as long, is taken whole: give " + NameOfLengths(signature, letter) +
            " if it is padded, too";
  }
  return hint;
}

}  // namespace linserve
