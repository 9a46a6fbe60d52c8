#include "core/workload/random_item.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace linserve {
namespace {

Tensor RandomTensor(const InputSpec& spec, Shape shape, std::mt19937_64& random) {
  const auto count = static_cast<size_t>(ElementCount(shape));
  if (spec.kind == InputKind::kMask) {
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, std::move(shape));
    std::fill_n(bytes, count, std::byte{1});
    return mask;
  }
  if (spec.kind == InputKind::kToken) {
    std::uniform_int_distribution<int64_t> token(0, std::max<int64_t>(spec.vocabulary, 1) - 1);
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) id = token(random);
    return Tensor::FromInts(std::move(shape), ids);
  }
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return Tensor::FromFloats(std::move(shape), values);
}

int64_t AllowedLength(const Signature& signature, char letter, int64_t drawn) {
  for (const LengthLimit& limit : signature.limits) {
    if (limit.letter == letter) drawn = std::max(drawn, limit.shortest);
  }
  return drawn;
}

// Calls function(input, axis, most) for each lettered axis that has a limit.
template <typename Function>
void ForLimits(const Signature& signature, const Function& function) {
  for (const InputSpec& spec : signature.inputs) {
    if (spec.optional) continue;
    for (const Axis& axis : spec.axes) {
      if (axis.letter == '\0') continue;
      const int64_t longest = LongestFor(signature, Item(), axis.letter);
      if (longest != 0) function(spec, axis, longest);
    }
  }
}

}  // namespace

Item RandomItem(const Signature& signature, const LengthDistribution& lengths,
                std::mt19937_64& random) {
  Item item;
  std::map<char, int64_t> drawn;
  for (const InputSpec& spec : signature.inputs) {
    if (spec.optional) continue;
    Shape shape;
    for (const Axis& axis : spec.axes) {
      if (axis.letter == '\0') {
        shape.push_back(axis.size);
        continue;
      }
      const auto [place, added] = drawn.try_emplace(axis.letter, 0);
      if (added) place->second = AllowedLength(signature, axis.letter, lengths.Draw(random));
      shape.push_back(place->second);
    }
    item.inputs[spec.name] = RandomTensor(spec, std::move(shape), random);
  }
  return item;
}

int64_t LongestLength(const Signature& signature) {
  int64_t least = 0;
  ForLimits(signature, [&](const InputSpec&, const Axis&, int64_t longest) {
    if (least == 0 || longest < least) least = longest;
  });
  return least;
}

absl::Status CheckLengths(const Signature& signature, const std::string& name,
                          const LengthDistribution& lengths) {
  absl::Status status;
  ForLimits(signature, [&](const InputSpec& spec, const Axis& axis, int64_t longest) {
    if (!status.ok() || lengths.longest() <= longest) return;
    status = absl::InvalidArgumentError("lengths '" + lengths.text() + "' go up to " +
                                        std::to_string(lengths.longest()) + ", but model '" + name +
                                        "' takes at most " + std::to_string(longest) + " on axis " +
                                        axis.letter + " of '" + spec.name + "'");
  });
  return status;
}

}  // namespace linserve
