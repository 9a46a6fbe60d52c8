#include <gtest/gtest.h>

#include <random>

#include "text/sentencepiece/trained.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

class AsPackage : public ::testing::TestWithParam<std::string> {
 protected:
  const TempDir directory_;
  const Trained trained_{directory_, GetParam()};
};

// Returns the ids of a text that is encoded in turns of `budget` bytes.
std::vector<int64_t> InTurns(const Tokenizer& tokenizer, std::string_view text, size_t budget) {
  TextEncoding encoding(tokenizer, text, Truncation::kNone, 0);
  while (!encoding.done()) {
    size_t left = budget;
    EXPECT_TRUE(encoding.Advance(left).ok());
  }
  EXPECT_TRUE(encoding.Finish().ok());
  return encoding.ids();
}

TEST_P(AsPackage, ShortTextsHaveThePackagesIds) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomTexts texts(seed);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = texts.Next(12);
    const auto expected = trained_.package->Encode(text);
    ASSERT_EQ(*trained_.tokenizer->Encode(text), expected) << text;
    ASSERT_EQ(InTurns(*trained_.tokenizer, text, 1), expected) << text;
    ASSERT_EQ(*trained_.tokenizer->Decode(expected), trained_.package->Decode(expected)) << text;
  }
}

TEST_P(AsPackage, LongTextsHaveThePackagesIdsInWhateverTurnsTheyAreRead) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomTexts texts(seed);
  const std::string words = ReadAll(DataFile("sentence_encoder/texts.txt"));
  for (const size_t budget : {1U << 10, 32U << 10, 1U << 30}) {
    const std::string text = words + texts.Next(20000) + words;
    EXPECT_EQ(InTurns(*trained_.tokenizer, text, budget), trained_.package->Encode(text));
  }
}

TEST_P(AsPackage, WhateverIdsComeTheyHaveThePackagesText) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int64_t> id(0, trained_.tokenizer->vocabulary() - 1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int64_t> ids(static_cast<size_t>(i % 10));
    for (int64_t& one : ids) one = id(random);
    ASSERT_EQ(*trained_.tokenizer->Decode(ids), trained_.package->Decode(ids));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AsPackage, ::testing::ValuesIn(KindsOfModels()));

}  // namespace
}  // namespace linserve
