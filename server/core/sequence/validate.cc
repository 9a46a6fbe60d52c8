#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "core/sequence/content.h"
#include "core/sequence/row_mask.h"
#include "core/sequence/signature.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

// Holds what the axes of one letter have in common, and the input that said so.
struct Length {
  int64_t value = 0;
  std::string input;
};
using LengthByLetter = std::map<char, Length>;

template <typename Spec>
std::string NamesOf(const std::vector<Spec>& specs) {
  std::string names;
  for (const Spec& spec : specs) names += (names.empty() ? "" : ", ") + Quoted(spec.name);
  return names.empty() ? "none" : names;
}

absl::Status Refuse(const InputSpec& spec, const std::string& fault, const std::string& expected) {
  return absl::InvalidArgumentError("input " + Quoted(spec.name) + ": " + fault + ", expected " +
                                    expected);
}

std::string AxisText(const Tensor& tensor, size_t axis) {
  return "shape " + ToString(tensor.shape()) + " has " + std::to_string(tensor.shape()[axis]) +
         " along axis " + std::to_string(axis);
}

absl::Status CheckNames(const Signature& signature, const Item& item) {
  for (const auto& [name, tensor] : item.inputs) {
    if (signature.FindInput(name) == nullptr) {
      return absl::InvalidArgumentError("input " + Quoted(name) +
                                        ": the model has no such input, expected one of " +
                                        NamesOf(signature.inputs));
    }
  }
  for (const InputSpec& spec : signature.inputs) {
    // Whether a chunk is the first one is known only once its session is.
    const bool optional = spec.optional || (spec.opens && item.chunk != nullptr);
    if (!optional && !item.inputs.contains(spec.name)) {
      return Refuse(spec, "it is missing", "a tensor " + ToString(spec.axes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDType(const InputSpec& spec, DType dtype) {
  if (Takes(spec.kind, dtype)) return absl::OkStatus();
  const std::string fault = "dtype is " + std::string(Name(dtype));
  switch (spec.kind) {
    case InputKind::kFloat:
      return Refuse(spec, fault, "F16, BF16, F32 or F64");
    case InputKind::kToken:
      return Refuse(spec, fault, "U8, I8, I16, I32 or I64");
    case InputKind::kMask:
      return Refuse(spec, fault, "BOOL, or integers that are 0 or 1");
    case InputKind::kAttentionMask:
      return Refuse(spec, fault, "BOOL, F16, BF16, F32 or F64");
  }
  return absl::InternalError("input " + Quoted(spec.name) + ": unknown kind");
}

absl::Status CheckAxis(const InputSpec& spec, const Tensor& tensor, size_t axis,
                       LengthByLetter& lengths) {
  const Axis& expected = spec.axes[axis + spec.axes.size() - tensor.shape().size()];
  const int64_t size = tensor.shape()[axis];
  const std::string form = " of " + ToString(spec.axes);
  if (expected.letter == '\0') {
    if (size == expected.size) return absl::OkStatus();
    return Refuse(spec, AxisText(tensor, axis), std::to_string(expected.size) + form);
  }
  if (size < 1) {
    return Refuse(spec, "the sequence is empty: " + AxisText(tensor, axis),
                  std::string(1, expected.letter) + form + " to be at least 1");
  }
  const auto [known, first] = lengths.try_emplace(expected.letter, Length{size, spec.name});
  if (first || known->second.value == size) return absl::OkStatus();
  return Refuse(spec, AxisText(tensor, axis),
                std::string(1, expected.letter) + form + " to be " +
                    std::to_string(known->second.value) + " as in input " +
                    Quoted(known->second.input));
}

absl::Status CheckShape(const InputSpec& spec, const Tensor& tensor, LengthByLetter& lengths) {
  const Shape& shape = tensor.shape();
  const size_t rank = spec.axes.size();
  if (shape.size() != rank && !(spec.broadcast && shape.size() + 1 == rank)) {
    return Refuse(spec,
                  "shape " + ToString(shape) + " has " + std::to_string(shape.size()) + " axes",
                  std::to_string(rank) + (spec.folds ? " or more" : "") + " as in " +
                      ToString(spec.axes) + (spec.broadcast ? ", or without the first" : ""));
  }
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (absl::Status status = CheckAxis(spec, tensor, axis, lengths); !status.ok()) return status;
  }
  if (!CheckedByteSize(tensor.dtype(), shape)) {
    return Refuse(spec, "shape " + ToString(shape) + " is too large", "fewer than 2^63 bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const Signature& signature, const Item& item,
                         const LengthByLetter& lengths) {
  for (const LengthLimit& limit : signature.limits) {
    const auto length = lengths.find(limit.letter);
    if (length == lengths.end()) continue;
    const int64_t value = length->second.value;
    if (value >= limit.shortest && value <= limit.longest) continue;
    if (!limit.unless_input.empty() && item.inputs.contains(limit.unless_input)) continue;
    std::string expected = "at most " + std::to_string(limit.longest);
    if (limit.shortest == limit.longest) {
      expected = "exactly " + std::to_string(limit.longest);
    } else if (value < limit.shortest) {
      expected = "at least " + std::to_string(limit.shortest);
    }
    if (!limit.unless_input.empty()) expected += " without input " + Quoted(limit.unless_input);
    return absl::InvalidArgumentError(
        "input " + Quoted(length->second.input) + ": the sequence is too " +
        (value < limit.shortest ? "short: " : "long: ") + limit.letter + " is " +
        std::to_string(value) + ", expected " + expected);
  }
  return absl::OkStatus();
}

absl::Status CheckContent(const Signature& signature, const InputSpec& spec, const Tensor& tensor) {
  std::optional<Fault> fault;
  std::string expected;
  switch (spec.kind) {
    case InputKind::kFloat:
      if (signature.allow_nonfinite) return absl::OkStatus();
      fault = FindNonfinite(tensor);
      expected = "numbers that are finite in F32";
      break;
    case InputKind::kToken:
      fault = FindOutside(tensor, spec.vocabulary);
      expected = "0 <= id < " + std::to_string(spec.vocabulary);
      break;
    case InputKind::kMask:
      fault = FindOutside(tensor, 2);
      expected = "0 or 1";
      break;
    case InputKind::kAttentionMask:
      if (tensor.dtype() == DType::kBool) {
        fault = FindOutside(tensor, 2);
        expected = "bytes that are 0 or 1";
      } else {
        fault = FindNoScore(tensor);
        expected = "finite numbers or -inf";
      }
      break;
  }
  if (!fault) return absl::OkStatus();
  return Refuse(spec, "it holds " + fault->value + " at position " + ToString(fault->position),
                expected);
}

// Checks the elements of the input, or of the one that stands in for it.
absl::Status CheckContent(const Signature& signature, const InputSpec& spec, const Item& item) {
  const auto input = item.inputs.find(spec.name);
  if (input != item.inputs.end()) return CheckContent(signature, spec, input->second);
  const auto other = item.inputs.find(spec.stand_in);
  if (other == item.inputs.end()) return absl::OkStatus();
  InputSpec stand_in = spec;
  stand_in.name = spec.stand_in;
  absl::Status status = CheckContent(signature, stand_in, other->second);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(std::string(status.message()) + " without input " +
                                    Quoted(spec.name));
}

absl::Status CheckOutput(const Signature& signature, const std::string& name, Pooling pooling) {
  const OutputSpec* output = signature.FindOutput(name);
  if (output == nullptr) {
    return absl::InvalidArgumentError("output " + Quoted(name) +
                                      ": the model has no such output, expected one of " +
                                      NamesOf(signature.outputs));
  }
  if (pooling != Pooling::kNone && !output->HasRows() && !output->IsVector()) {
    return absl::InvalidArgumentError("output " + Quoted(name) + ": it is " +
                                      ToString(output->axes) +
                                      ", expected rows to pool or no pooling");
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const Signature& signature, const OutputOptions& options) {
  if (!IsFloat(options.dtype) && options.dtype != DType::kI8) {
    return absl::InvalidArgumentError("output dtype: " + std::string(Name(options.dtype)) +
                                      " is asked for, expected I8, F16, BF16, F32 or F64");
  }
  if (options.outputs.empty() && !signature.outputs.empty()) {
    return CheckOutput(signature, signature.outputs[0].name, options.pooling);
  }
  if (absl::Status status = CheckOutputCount(signature, std::ssize(options.outputs));
      !status.ok()) {
    return status;
  }
  for (auto name = options.outputs.begin(); name != options.outputs.end(); ++name) {
    absl::Status status = CheckOutput(signature, *name, options.pooling);
    if (!status.ok()) return status;
    if (std::find(options.outputs.begin(), name, *name) == name) continue;
    return absl::InvalidArgumentError(
        "output " + Quoted(*name) + ": it is asked for more than once, expected each output once");
  }
  return absl::OkStatus();
}

// What is made of several rows needs one that is there. REQUIRES: all else of the item is valid.
absl::Status CheckPooledRows(const Signature& signature, const Item& item) {
  for (const OutputSpec& output : signature.outputs) {
    const auto& asked = item.options.outputs;
    if (asked.empty() ? &output != signature.outputs.data()
                      : std::find(asked.begin(), asked.end(), output.name) == asked.end()) {
      continue;
    }
    if (output.of_nothing) continue;
    if (output.HasRows() && item.options.pooling == Pooling::kNone) continue;
    const auto mask = RowMask::Of(signature, output, item.inputs);
    if (!mask) continue;
    const char letter = mask->spec->axes[0].letter;
    if (!mask->Rows(LengthOf(signature, item, letter)).empty()) continue;
    return Refuse(*mask->spec, "it leaves no row of output " + Quoted(output.name) + " to pool",
                  std::string("at least one that is ") + (mask->spec->hides ? "false" : "true"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOutputCount(const Signature& signature, int64_t asked) {
  if (asked <= 2 * std::ssize(signature.outputs) + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(std::to_string(asked) +
                                    " outputs are asked for, expected each once of " +
                                    NamesOf(signature.outputs));
}

// Checks go from cheap to dear: the elements are read only when all shapes are right.
absl::Status Validate(const Signature& signature, const Item& item) {
  absl::Status status = item.fault;
  if (status.ok()) status = CheckNames(signature, item);
  if (status.ok()) status = CheckOptions(signature, item.options);
  LengthByLetter lengths;
  for (const InputSpec& spec : signature.inputs) {
    const auto input = item.inputs.find(spec.name);
    if (input == item.inputs.end()) continue;
    if (status.ok()) status = CheckDType(spec, input->second.dtype());
    if (status.ok()) status = CheckShape(spec, input->second, lengths);
  }
  if (status.ok()) status = CheckLimits(signature, item, lengths);
  for (const InputSpec& spec : signature.inputs) {
    if (status.ok()) status = CheckContent(signature, spec, item);
  }
  if (status.ok()) status = CheckPooledRows(signature, item);
  return status;
}

}  // namespace linserve
