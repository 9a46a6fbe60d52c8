#include "core/signature.h"

#include <algorithm>
#include <set>

namespace linserve {
namespace {

template <typename Spec>
const Spec* FindByName(const std::vector<Spec>& specs, const std::string& name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

bool IsAsked(const std::vector<std::string>& outputs, const std::string& name) {
  return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
}

}  // namespace

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

int64_t LengthOf(const Signature& signature, const Item& item, char letter) {
  for (const InputSpec& spec : signature.inputs) {
    const auto input = item.inputs.find(spec.name);
    if (input == item.inputs.end()) continue;
    for (size_t axis = 0; axis < spec.axes.size(); ++axis) {
      if (spec.axes[axis].letter == letter) return input->second.shape()[axis];
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

int64_t PackedRows(const Signature& signature, const Item& item) {
  std::set<char> letters;
  for (const InputSpec& spec : signature.inputs) {
    for (const Axis& axis : spec.axes) {
      if (axis.letter != '\0') letters.insert(axis.letter);
    }
  }
  int64_t rows = 0;
  for (char letter : letters) rows += LengthOf(signature, item, letter);
  return rows;
}

std::string BatchKey(const Signature& signature, const Item& item) {
  // In the order of the signature, so that the order in which a caller asks makes no difference.
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
  return key;
}

}  // namespace linserve
