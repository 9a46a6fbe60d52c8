#include "text/hard_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "text/huggingface/tokenizers.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class HardJsonTexts : public ::testing::TestWithParam<std::string> {
 protected:
  // Returns one of the parts, another one each time: a failure names what was drawn.
  static std::pair<std::string, std::string> DrawnPart() {
    const std::vector<std::pair<std::string, std::string>> parts = HardParts();
    return parts[std::random_device()() % parts.size()];
  }

  const std::shared_ptr<const Tokenizer> tokenizer_ = TrainedTokenizer(GetParam());
};

TEST_P(HardJsonTexts, TakeTimeInProportionToTheirLength) {
  constexpr size_t kShort = 64 << 10;  // so much is looked at together
  constexpr size_t kTimes = 8;
  const auto [name, part] = DrawnPart();
  const double once = SecondsFor(*tokenizer_, Repeated(part, kShort));
  const double many = SecondsFor(*tokenizer_, Repeated(part, kTimes * kShort));
  // What is quadratic takes 64 times as long.
  EXPECT_LT(many, 4 * kTimes * (once + 0.0002)) << name;
}

TEST_P(HardJsonTexts, AreReadInTurnsOfABoundedLength) {
  constexpr size_t kTurn = 32 << 10;
  const auto [name, part] = DrawnPart();
  const std::string text = Repeated(part, 200 << 10);
  TextEncoding encoding(*tokenizer_, text, Truncation::kNone, 0);
  size_t most_read = 0;
  while (!encoding.done()) {
    const size_t left = encoding.left();
    size_t budget = kTurn;
    ASSERT_TRUE(encoding.Advance(budget).ok());
    most_read = std::max(most_read, left - encoding.left());
    // What waits is 64 KiB, one block more, and what they become.
    EXPECT_LE(encoding.held_bytes(), (16U << 20) + 4 * sizeof(int64_t) * encoding.ids().size())
        << name;
  }
  EXPECT_LE(most_read, kTurn + (128U << 10)) << name;
}

TEST_P(HardJsonTexts, AreNotReadToTheirEndWhereTheFirstTokensAreWanted) {
  const std::string text = Repeated("the server of texts ", 1 << 20);
  TextEncoding encoding(*tokenizer_, text, Truncation::kRight, 20);
  size_t budget = std::numeric_limits<size_t>::max();
  ASSERT_TRUE(encoding.Advance(budget).ok());
  EXPECT_LT(std::numeric_limits<size_t>::max() - budget, 300U << 10);
  ASSERT_TRUE(encoding.Finish().ok());
  std::vector<int64_t> expected = *tokenizer_->Encode(Repeated("the server of texts ", 1 << 10));
  ASSERT_TRUE(Truncate(tokenizer_->marks(), Truncation::kRight, 20, expected).ok());
  EXPECT_EQ(encoding.ids(), expected);
}

INSTANTIATE_TEST_SUITE_P(Kinds, HardJsonTexts, ::testing::ValuesIn(TrainedNames()),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(LongWords, OfWordPieceAreUnknownHoweverLongTheyAre) {
  const auto tokenizer = TrainedTokenizer("bert-uncased");
  const std::vector<int64_t> alone = *tokenizer->Encode("x " + std::string(101, 'a') + " x");
  for (const size_t bytes : {100U << 10, 200U << 10, 1U << 20}) {
    EXPECT_EQ(*tokenizer->Encode("x " + std::string(bytes, 'a') + " x"), alone) << bytes;
  }
}

TEST(JsonTexts, ThatAreNotUtf8AreRefusedWhereverThatIs) {
  const auto tokenizer = TrainedTokenizer("bert-uncased");
  for (const std::string text : {"\xff", "caf\xe9", "\xc0\xaf", "\xed\xa0\x80", "[MASK]\xe2\x82"}) {
    for (const size_t before : {size_t{0}, size_t{1023}, size_t{1024}, size_t{100'000}}) {
      const auto ids = tokenizer->Encode(Repeated("word ", before) + text);
      EXPECT_TRUE(absl::IsInvalidArgument(ids.status()));
      EXPECT_THAT(ids.status().message(), HasSubstr("not UTF-8"));
    }
  }
}

}  // namespace
}  // namespace linserve
