#include "core/sequence/result_bytes.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace linserve {
namespace {

constexpr double kMost = static_cast<double>(int64_t{1} << 50);

std::map<char, double> Lengths(const Signature& signature, const Item& item) {
  std::map<char, double> lengths;
  for (const InputSpec& spec : signature.inputs) {
    const auto input = item.inputs.find(spec.name);
    if (input == item.inputs.end()) continue;
    const Shape& shape = input->second.shape();
    if (shape.size() > spec.axes.size()) continue;
    const size_t left_out = spec.axes.size() - shape.size();  // by broadcasting
    for (size_t axis = left_out; axis < spec.axes.size(); ++axis) {
      const char letter = spec.axes[axis].letter;
      if (letter != '\0') lengths.emplace(letter, static_cast<double>(shape[axis - left_out]));
    }
  }
  return lengths;
}

}  // namespace

int64_t ResultBytes(const Signature& signature, const Item& item) {
  const std::map<char, double> lengths = Lengths(signature, item);
  const std::vector<std::string>& asked = item.options.outputs;
  double bytes = 0;
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const OutputSpec& output = signature.outputs[i];
    const bool wanted =
        asked.empty() ? i == 0 : std::find(asked.begin(), asked.end(), output.name) != asked.end();
    if (!wanted) continue;
    auto elements = static_cast<double>(ByteSize(item.options.dtype));
    const bool pooled = item.options.pooling != Pooling::kNone && output.HasRows();
    for (size_t axis = pooled ? 1 : 0; axis < output.axes.size(); ++axis) {
      const auto length = lengths.find(output.axes[axis].letter);
      elements *= output.axes[axis].letter == '\0' ? static_cast<double>(output.axes[axis].size)
                  : length == lengths.end()        ? 1
                                                   : length->second;
    }
    bytes += elements;
  }
  return static_cast<int64_t>(std::clamp(bytes, 0.0, kMost));
}

}  // namespace linserve
