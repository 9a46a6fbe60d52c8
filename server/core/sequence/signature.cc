#include "core/sequence/signature.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace linserve {
namespace {

template <typename Spec>
const Spec* FindByName(const std::vector<Spec>& specs, const std::string& name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

bool Contains(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

bool IsAsked(const std::vector<std::string>& outputs, const std::string& name) {
  return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
}

constexpr std::array<std::string_view, 4> kKindNames = {"float", "token", "mask", "attention_mask"};
constexpr std::array<std::string_view, 4> kBatchAxisNames = {"first", "second", "none", "folded"};

template <typename Enum>
std::optional<Enum> FromName(const std::array<std::string_view, 4>& names, std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view Name(InputKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<InputKind> InputKindFromName(std::string_view name) {
  return FromName<InputKind>(kKindNames, name);
}

std::string_view Name(BatchAxis axis) { return kBatchAxisNames[static_cast<size_t>(axis)]; }

std::optional<BatchAxis> BatchAxisFromName(std::string_view name) {
  return FromName<BatchAxis>(kBatchAxisNames, name);
}

std::string ToString(const std::vector<Axis>& axes) {
  std::string text = "[";
  for (const Axis& axis : axes) {
    if (text.size() > 1) text += ", ";
    text += axis.letter != '\0' ? std::string(1, axis.letter) : std::to_string(axis.size);
  }
  return text + "]";
}

const InputSpec* Signature::FindInput(const std::string& name) const {
  return FindByName(inputs, name);
}

const OutputSpec* Signature::FindOutput(const std::string& name) const {
  return FindByName(outputs, name);
}

void FoldAxes(const Signature& signature, Item& item) {
  for (const InputSpec& spec : signature.inputs) {
    const auto input = item.inputs.find(spec.name);
    if (!spec.folds || spec.axes.empty() || input == item.inputs.end()) continue;
    const Shape& given = input->second.shape();
    if (given.size() <= spec.axes.size() || !CheckedElementCount(given)) continue;
    const auto last = given.begin() + static_cast<std::ptrdiff_t>(spec.axes.size()) - 1;
    Shape folded(given.begin(), last);
    folded.push_back(ElementCount(Shape(last, given.end())));
    input->second = input->second.Reshaped(std::move(folded));
  }
}

int64_t LengthOf(const Signature& signature, const Item& item, char letter) {
  for (const InputSpec& spec : signature.inputs) {
    const auto input = item.inputs.find(spec.name);
    if (input == item.inputs.end()) continue;
    const Shape& shape = input->second.shape();
    const size_t left_out = spec.axes.size() - shape.size();  // by broadcasting
    for (size_t axis = left_out; axis < spec.axes.size(); ++axis) {
      if (spec.axes[axis].letter == letter) return shape[axis - left_out];
    }
  }
  return 0;
}

int64_t LongestFor(const Signature& signature, const Item& item, char letter) {
  int64_t longest = 0;
  for (const LengthLimit& limit : signature.limits) {
    const bool applies = limit.unless_input.empty() || !item.inputs.contains(limit.unless_input);
    if (limit.letter != letter || !applies) continue;
    longest = longest == 0 ? limit.longest : std::min(longest, limit.longest);
  }
  return longest;
}

std::string LaidOutLetters(const Signature& signature, const Item& item) {
  std::string letters;
  for (const InputSpec& spec : signature.inputs) {
    if (spec.axes.empty() || !item.inputs.contains(spec.name)) continue;
    const char letter = spec.axes[0].letter;
    if (letter != '\0' && !Contains(letters, letter)) letters += letter;
  }
  return letters;
}

std::string RigidLetters(const Signature& signature, const Item& item) {
  std::string letters;
  for (const InputSpec& spec : signature.inputs) {
    if (!item.inputs.contains(spec.name)) continue;
    for (size_t axis = 1; axis < spec.axes.size(); ++axis) {
      const char letter = spec.axes[axis].letter;
      if (letter != '\0' && !Contains(letters, letter)) letters += letter;
    }
  }
  return letters;
}

bool CountsAsRows(const Signature& signature, const Item& item, char letter) {
  return std::any_of(signature.inputs.begin(), signature.inputs.end(), [&](const InputSpec& spec) {
    const bool data = spec.kind == InputKind::kFloat || spec.kind == InputKind::kToken;
    return data && !spec.axes.empty() && spec.axes[0].letter == letter &&
           item.inputs.contains(spec.name);
  });
}

int64_t PackedRows(const Signature& signature, const Item& item) {
  int64_t rows = 0;
  for (char letter : LaidOutLetters(signature, item)) {
    if (!CountsAsRows(signature, item, letter)) continue;
    rows = std::min(kMostRows, rows + std::min(kMostRows, LengthOf(signature, item, letter)));
  }
  if (rows > 0) return rows;
  rows = 1;
  for (char letter : RigidLetters(signature, item)) {
    const int64_t length = LengthOf(signature, item, letter);
    if (__builtin_mul_overflow(rows, length, &rows)) return kMostRows;
  }
  return std::min(rows, kMostRows);
}

std::string BatchKey(const Signature& signature, const Item& item) {
  // Outputs are listed in the order of the signature, so that the order in which a caller asks
  // makes no difference.
  std::string key;
  for (const InputSpec& spec : signature.inputs) {
    if (item.inputs.contains(spec.name)) key += spec.name + ",";
  }
  key += "->";
  const std::vector<std::string>& asked = item.options.outputs;
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const std::string& name = signature.outputs[i].name;
    if (asked.empty() ? i == 0 : IsAsked(asked, name)) key += name + ",";
  }
  for (char letter : RigidLetters(signature, item)) {
    key += letter + std::to_string(LengthOf(signature, item, letter));
  }
  if (item.session != nullptr) key += "/session";
  return key;
}

}  // namespace linserve
