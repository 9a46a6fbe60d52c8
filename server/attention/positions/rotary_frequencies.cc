#include "attention/positions/rotary_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

using Scaling = RotaryFrequencies::Scaling;

at::Tensor Llama3(const RotaryFrequencies& rotary, const at::Tensor& frequencies) {
  const at::Tensor lengths = 2 * std::numbers::pi / frequencies;
  const at::Tensor divided =
      at::where(lengths > rotary.trained / rotary.slow, frequencies / rotary.factor, frequencies);
  const at::Tensor kept = (rotary.trained / lengths - rotary.slow) / (rotary.fast - rotary.slow);
  const at::Tensor in_part = (1 - kept) * divided / rotary.factor + kept * divided;
  const at::Tensor between = lengths.ge(rotary.trained / rotary.fast)
                                 .logical_and(lengths.le(rotary.trained / rotary.slow));
  return at::where(between, in_part, divided);
}

// Returns the place of the pair that turns so many times in the positions trained with.
double PlaceOf(double turns, const RotaryFrequencies& rotary, int64_t width) {
  return static_cast<double>(width) * std::log(rotary.trained / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rotary.theta));
}

at::Tensor Yarn(const RotaryFrequencies& rotary, const at::Tensor& lengths, int64_t width) {
  double first = PlaceOf(rotary.fast, rotary, width);
  double last = PlaceOf(rotary.slow, rotary, width);
  if (rotary.whole_places) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(width - 1));
  constexpr double kLeast = 0.001;
  if (first == last) last += kLeast;
  const at::Tensor divided =
      ((at::arange(width / 2, lengths.options()) - first) / (last - first)).clamp(0, 1);
  const at::Tensor kept = 1 - divided;
  return (rotary.factor * lengths).reciprocal() * (1 - kept) + lengths.reciprocal() * kept;
}

}  // namespace

at::Tensor ReciprocalFrequencies(int64_t width, double base, const at::TensorOptions& options) {
  const at::Tensor exponents =
      at::arange(0, width, 2, options.dtype(at::kFloat)) / static_cast<double>(width);
  return at::pow(base, exponents);
}

at::Tensor FrequenciesOf(const RotaryFrequencies& rotary, int64_t width) {
  const at::Tensor lengths = ReciprocalFrequencies(width, rotary.theta);
  switch (rotary.scaling) {
    case Scaling::kLinear:
      return lengths.reciprocal() / rotary.factor;
    case Scaling::kLlama3:
      return Llama3(rotary, lengths.reciprocal());
    case Scaling::kYarn:
      return Yarn(rotary, lengths, width);
    case Scaling::kLong:
      return (at::tensor(rotary.factors, at::kFloat) * lengths).reciprocal();
    case Scaling::kNone:
      break;
  }
  return lengths.reciprocal();
}

}  // namespace linserve
