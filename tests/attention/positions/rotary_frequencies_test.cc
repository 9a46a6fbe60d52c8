#include "attention/positions/rotary_frequencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

using Scaling = RotaryFrequencies::Scaling;

constexpr int64_t kWidthOfHead = 64;

// Expects of each pair what `scaled` makes of its usual frequency.
template <typename Scaled>
void ExpectFrequencies(const RotaryFrequencies& rotary, const Scaled& scaled) {
  const at::Tensor found = FrequenciesOf(rotary, kWidthOfHead);
  ASSERT_EQ(found.numel(), kWidthOfHead / 2);
  for (int64_t pair = 0; pair < kWidthOfHead / 2; ++pair) {
    const double usual = std::pow(rotary.theta, -2.0 * double(pair) / kWidthOfHead);
    const double expected = scaled(pair, usual);
    EXPECT_NEAR(found[pair].item<float>(), expected, 1e-5 * expected) << pair;
  }
}

// How many times a pair turns in the positions that the model was trained with.
double Turns(const RotaryFrequencies& rotary, double frequency) {
  return rotary.trained * frequency / (2 * std::numbers::pi);
}

TEST(RotaryFrequencies, FallByTheSameFactorFromPairToPair) {
  ExpectFrequencies({.theta = 500}, [](int64_t, double usual) { return usual; });
  ExpectFrequencies({.theta = 1e6, .scaling = Scaling::kLinear, .factor = 4},
                    [](int64_t, double usual) { return usual / 4; });
}

TEST(RotaryFrequencies, AreDividedForPairsThatTurnSlowly) {
  const RotaryFrequencies rotary{.theta = 5e5,
                                 .scaling = Scaling::kLlama3,
                                 .factor = 8,
                                 .trained = 8192,
                                 .slow = 1,
                                 .fast = 4};
  ExpectFrequencies(rotary, [&](int64_t, double usual) {
    const double kept =
        std::clamp((Turns(rotary, usual) - rotary.slow) / (rotary.fast - rotary.slow), 0.0, 1.0);
    return kept * usual + (1 - kept) * usual / rotary.factor;
  });
}

TEST(RotaryFrequencies, AreDividedByThePlaceOfThePair) {
  RotaryFrequencies rotary{
      .theta = 1e4, .scaling = Scaling::kYarn, .factor = 4, .trained = 2048, .slow = 1, .fast = 32};
  for (const bool whole : {true, false}) {
    rotary.whole_places = whole;
    const auto place = [&](double turns) {
      return kWidthOfHead * std::log(rotary.trained / (turns * 2 * std::numbers::pi)) /
             (2 * std::log(rotary.theta));
    };
    const double first = whole ? std::floor(place(rotary.fast)) : place(rotary.fast);
    const double last = whole ? std::ceil(place(rotary.slow)) : place(rotary.slow);
    ExpectFrequencies(rotary, [&](int64_t pair, double usual) {
      const double divided = std::clamp((double(pair) - first) / (last - first), 0.0, 1.0);
      return (1 - divided) * usual + divided * usual / rotary.factor;
    });
  }
}

}  // namespace
}  // namespace linserve
