#include "client/load_inputs.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>

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

// Models that take only one length get it, whatever is drawn.
int64_t AllowedLength(const Signature& signature, char letter, int64_t drawn) {
  for (const LengthLimit& limit : signature.limits) {
    if (limit.letter == letter) drawn = std::max(drawn, limit.shortest);
  }
  return drawn;
}

NamedSequence RandomSequence(const Signature& signature, const LengthDistribution& lengths,
                             std::mt19937_64& random) {
  NamedSequence sequence;
  std::map<char, int64_t> drawn;
  for (const InputSpec& spec : signature.inputs) {
    if (spec.optional) continue;
    Shape shape;
    for (const Axis& axis : spec.axes) {
      if (axis.letter == '\0') {
        shape.push_back(axis.size);
      } else {
        const auto [place, added] = drawn.try_emplace(axis.letter, 0);
        if (added) place->second = AllowedLength(signature, axis.letter, lengths.Draw(random));
        shape.push_back(place->second);
      }
    }
    sequence.inputs[spec.name] = RandomTensor(spec, std::move(shape), random);
  }
  return sequence;
}

absl::Status CheckLengths(const ModelDescription& model, const LengthDistribution& lengths) {
  for (const InputSpec& spec : model.signature.inputs) {
    if (spec.optional) continue;
    for (const Axis& axis : spec.axes) {
      if (axis.letter == '\0') continue;
      const int64_t longest = LongestFor(model.signature, Item(), axis.letter);
      if (longest == 0 || lengths.longest() <= longest) continue;
      return absl::InvalidArgumentError("lengths '" + lengths.text() + "' go up to " +
                                        std::to_string(lengths.longest()) + ", but model '" +
                                        model.name + "' takes at most " + std::to_string(longest) +
                                        " on axis " + axis.letter + " of '" + spec.name + "'");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<EmbedCall>> MakeLoadCalls(const ModelDescription& model,
                                                     const LengthDistribution& lengths,
                                                     const LoadInputOptions& options) {
  if (auto status = CheckLengths(model, lengths); !status.ok()) return status;
  std::mt19937_64 random(options.seed);
  std::vector<EmbedCall> calls;
  size_t bytes = 0;
  while (calls.empty() || (calls.size() < options.requests && bytes < options.max_bytes)) {
    EmbedCall call{model.name, model.version, options.options, 0, {}, {}};
    for (size_t i = 0; i < options.sequences; ++i) {
      call.sequences.push_back(RandomSequence(model.signature, lengths, random));
      for (const auto& [name, tensor] : call.sequences.back().inputs) bytes += tensor.byte_size();
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace linserve
