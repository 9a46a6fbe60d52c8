#include "models/forward/fastest_padding.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/forward/ragged_input.h"
#include "models/placement/guarded.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

// Returns two lengths that the letter may have, of which the first is less if the limits leave
// several.
std::vector<int64_t> TwoLengths(const Signature& signature, char letter) {
  constexpr int64_t kShort = 3;
  constexpr int64_t kLong = 5;
  std::vector<int64_t> lengths = {kShort, kLong};
  for (const LengthLimit& limit : signature.limits) {
    if (limit.letter != letter) continue;
    for (int64_t& length : lengths) {
      length = std::max(std::min(length, limit.longest), limit.shortest);
    }
    lengths[1] = std::max(lengths[1], std::min(limit.longest, lengths[0] + 1));
  }
  return lengths;
}

TensorBatch TwoSequences(const ModelInfo& info, Padding padding, const Placement& placement,
                         int64_t& apart) {
  TensorBatch batch;
  batch.padding = padding;
  batch.size = 2;
  for (const InputSpec& input : info.signature.inputs) {
    if (input.optional) continue;
    const char letter = input.axes[0].letter;
    const std::vector<int64_t> lengths = TwoLengths(info.signature, letter);
    const int64_t padded_length = padding == Padding::kPacked ? 0 : lengths.back();
    const auto [layout, added] =
        batch.axes.emplace(letter, PlacedLayout{LayOut(lengths, padded_length)});
    if (added) {
      placement.AddTable(layout->second);
      auto table = std::make_shared<LayoutTable>(*layout->second.table);
      table->apart = &apart;
      layout->second.table = std::move(table);
    }
    batch.inputs[input.name] =
        ZeroInput(input, layout->second.rows, info.dtype, placement.device());
  }
  return batch;
}

// Computes the two, and returns how often they were computed one after the other.
int64_t TimesApart(const Network& network, const ModelInfo& info, Padding padding,
                   const Placement& placement) {
  const c10::InferenceMode no_autograd;
  int64_t apart = 0;
  const std::unique_ptr<Pass> pass = network.Begin(TwoSequences(info, padding, placement, apart));
  while (pass->Step()) {
  }
  return apart;
}

}  // namespace

Padding FastestPadding(const Network& network, const ModelInfo& info, const Placement& placement) {
  const std::vector<InputSpec>& inputs = info.signature.inputs;
  const bool ragged = std::all_of(inputs.begin(), inputs.end(), [](const InputSpec& input) {
    return input.optional || IsRagged(input);
  });
  if (placement.on_host() || !ragged || info.signature.request_is_unit) return Padding::kPacked;
  try {
    const int64_t packed = TimesApart(network, info, Padding::kPacked, placement);
    if (packed == 0) return Padding::kPacked;
    if (packed > TimesApart(network, info, Padding::kBucket, placement)) return Padding::kBucket;
  } catch (const c10::Error& error) {
    // What makes this fail is told again by whatever is computed next.
    Log(LogLevel::kWarning, "the fastest padding was not found", {{"because", FirstLine(error)}});
  }
  return Padding::kPacked;
}

}  // namespace linserve
