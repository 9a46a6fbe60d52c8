#include "engine/generation/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "support/test_tensors.h"

namespace linserve {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

int64_t Sampled(TokenSampler& sampler, const std::vector<float>& logits) {
  return sampler.Sample(logits.data(), static_cast<int64_t>(logits.size()));
}

// Returns how often each token is chosen in `count` draws, over `count`.
std::map<int64_t, double> Frequencies(const SamplingOptions& options,
                                      const std::vector<float>& logits, int count = 20000) {
  TokenSampler sampler(options);
  std::map<int64_t, double> frequencies;
  for (int i = 0; i < count; ++i) frequencies[Sampled(sampler, logits)] += 1.0 / count;
  return frequencies;
}

TEST(TokenSampler, WithoutTemperatureChoosesTheLikeliestAndOfEqualOnesTheFirst) {
  TokenSampler sampler({});
  EXPECT_EQ(Sampled(sampler, {1, 3, 2}), 1);
  EXPECT_EQ(Sampled(sampler, {5, 7, 7}), 1);
  EXPECT_EQ(Sampled(sampler, {-kInfinity, -2}), 1);
  EXPECT_EQ(Sampled(sampler, {kNaN, -9, kNaN}), 1);
  EXPECT_EQ(Sampled(sampler, {kNaN, kNaN}), 0);
}

TEST(TokenSampler, ChoosesEachTokenAsOftenAsItsProbability) {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  auto frequencies = Frequencies({.temperature = 1}, logits);
  EXPECT_NEAR(frequencies[0], 0.125, 0.01);
  EXPECT_NEAR(frequencies[1], 0.25, 0.01);
  EXPECT_NEAR(frequencies[2], 0.625, 0.01);
  // Half the temperature squares the odds: 1, 4 and 25 of 30.
  frequencies = Frequencies({.temperature = 0.5}, logits);
  EXPECT_NEAR(frequencies[0], 1.0 / 30, 0.01);
  EXPECT_NEAR(frequencies[1], 4.0 / 30, 0.01);
}

TEST(TokenSampler, TopKLeavesTheLikeliestOnes) {
  const std::vector<float> logits = {0, 3, 1, 3, 2};
  auto frequencies = Frequencies({.temperature = 1, .top_k = 2}, logits);
  EXPECT_EQ(frequencies.size(), 2u);
  EXPECT_NEAR(frequencies[1], 0.5, 0.02);
  EXPECT_NEAR(frequencies[3], 0.5, 0.02);
  EXPECT_EQ(Frequencies({.temperature = 9, .top_k = 1}, logits, 100).size(), 1u);
  EXPECT_EQ(Frequencies({.temperature = 9, .top_k = 99}, logits).size(), 5u);
}

TEST(TokenSampler, TopPLeavesTheLikeliestOnesThatMakeUpSoMuch) {
  const std::vector<float> logits = {std::log(0.1F), std::log(0.6F), std::log(0.3F)};
  EXPECT_EQ(Frequencies({.temperature = 1, .top_p = 0.55}, logits).size(), 1u);
  auto frequencies = Frequencies({.temperature = 1, .top_p = 0.65}, logits);
  EXPECT_EQ(frequencies.size(), 2u);
  EXPECT_NEAR(frequencies[1], 2.0 / 3, 0.02);
  EXPECT_EQ(Frequencies({.temperature = 1, .top_p = 0.95}, logits).size(), 3u);
  EXPECT_EQ(Frequencies({.temperature = 1, .top_k = 2, .top_p = 0.99}, logits).size(), 2u);
}

TEST(TokenSampler, EqualSeedsGiveEqualTokens) {
  const std::vector<float> logits(50, 1);
  const auto tokens = [&](uint64_t seed) {
    TokenSampler sampler({.temperature = 1, .seed = seed});
    std::vector<int64_t> all;
    for (int i = 0; i < 20; ++i) all.push_back(Sampled(sampler, logits));
    return all;
  };
  EXPECT_EQ(tokens(7), tokens(7));
  EXPECT_NE(tokens(7), tokens(8));
}

TEST(TokenSampler, NumbersBeyondAllBoundsDoNotConfuseIt) {
  EXPECT_EQ(Frequencies({.temperature = 1}, {1, kInfinity, 2}, 100).size(), 1u);
  EXPECT_EQ(Frequencies({.temperature = 1}, {kNaN, 0, -kInfinity}, 100).begin()->first, 1);
  EXPECT_EQ(Frequencies({.temperature = 1e-30}, {1, 2}, 100).begin()->first, 1);
  EXPECT_EQ(Frequencies({.temperature = 1}, {3e38F, -3e38F}, 100).size(), 1u);
}

}  // namespace
}  // namespace linserve
