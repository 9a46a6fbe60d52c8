#include "text/text_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "text/hard_texts.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/sentencepiece/trained.h"

namespace linserve {
namespace {

class HardTexts : public ::testing::TestWithParam<std::string> {
 protected:
  const TempDir directory_;
  const Trained trained_{directory_, GetParam()};
};

TEST_P(HardTexts, TakeTimeInProportionToTheirLength) {
  constexpr size_t kShort = 2 << 10;
  constexpr size_t kTimes = 8;
  for (const auto& [name, part] : HardParts()) {
    const double once = SecondsFor(*trained_.tokenizer, Repeated(part, kShort));
    const double many = SecondsFor(*trained_.tokenizer, Repeated(part, kTimes * kShort));
    // What is quadratic takes 64 times as long.
    EXPECT_LT(many, 4 * kTimes * (once + 0.0001)) << name;
  }
}

TEST_P(HardTexts, AreReadInTurnsThatCountWhatTheyBecome) {
  constexpr size_t kTurn = 32 << 10;
  const std::string text = Repeated("\xEF\xB7\xBA", 64 << 10);
  TextEncoding encoding(*trained_.tokenizer, text, Truncation::kNone, 0);
  size_t most_read = 0;
  size_t most_ids = 0;
  while (!encoding.done()) {
    const size_t left = encoding.left();
    const size_t ids = encoding.ids().size();
    size_t budget = kTurn;
    ASSERT_TRUE(encoding.Advance(budget).ok());
    most_read = std::max(most_read, left - encoding.left());
    most_ids = std::max(most_ids, encoding.ids().size() - ids);
  }
  // A turn ends at most one cut, of 16 KiB and what the last rule made, after its budget does.
  EXPECT_LE(most_read, kTurn + (16U << 10));
  EXPECT_LE(most_ids, kTurn + (32U << 10));
}

INSTANTIATE_TEST_SUITE_P(Kinds, HardTexts,
                         ::testing::Values("--model_type=unigram --vocab_size=500",
                                           "--model_type=unigram --vocab_size=700 --byte_fallback",
                                           "--model_type=bpe --vocab_size=500",
                                           "--model_type=word --vocab_size=300",
                                           "--model_type=char --vocab_size=300"));

class TokenPlaces : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenPlaces, AreThoseOfThePackage) {
  const TempDir directory;
  const Trained trained(directory, GetParam());
  RandomTexts random(5);
  for (int i = 0; i < 500; ++i) {
    const std::string text = random.Next(i < 490 ? 20 : 5000);
    TextEncoding encoding(*trained.tokenizer, text, /*marks=*/false);
    while (!encoding.done()) {
      size_t budget = 1000;
      ASSERT_TRUE(encoding.Advance(budget).ok());
    }
    ASSERT_TRUE(encoding.Finish().ok());
    std::vector<std::pair<size_t, size_t>> places;
    for (const TokenPlace& place : encoding.places()) places.emplace_back(place.begin, place.end);
    ASSERT_EQ(encoding.ids(), trained.package->Encode(text)) << testing::PrintToString(text);
    ASSERT_EQ(places, trained.package->Places(text)) << testing::PrintToString(text);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenPlaces, ::testing::ValuesIn(KindsOfModels()));

class Truncated : public ::testing::Test {
 protected:
  // Returns the ids of a text that is truncated while it is read; a long one leaves unread bytes.
  absl::StatusOr<std::vector<int64_t>> Ids(std::string_view text, Truncation truncation,
                                           int64_t longest) {
    TextEncoding encoding(*tokenizer_, text, truncation, longest);
    size_t budget = std::numeric_limits<size_t>::max();
    absl::Status status = encoding.Advance(budget);
    unread_ = std::numeric_limits<size_t>::max() - budget < text.size();
    if (status.ok()) status = encoding.Finish();
    if (!status.ok()) return status;
    return encoding.ids();
  }

  const std::shared_ptr<const Tokenizer> tokenizer_ =
      *LoadSentencePiece(DataFile("text/tokenizer.model"), {.add_bos = true, .add_eos = true});
  bool unread_ = false;
};

TEST_F(Truncated, ATextThatIsTruncatedWhileItIsReadHasTheIdsOfAWholeOne) {
  const std::string text = Repeated("the server answers ", 100 << 10);
  const std::vector<int64_t> whole = *tokenizer_->Encode(text);
  for (const Truncation truncation : {Truncation::kLeft, Truncation::kRight}) {
    for (const int64_t longest : {1, 2, 3, 100, 5000}) {
      std::vector<int64_t> expected = whole;
      ASSERT_TRUE(Truncate(tokenizer_->marks(), truncation, longest, expected).ok());
      EXPECT_EQ(*Ids(text, truncation, longest), expected) << longest;
      EXPECT_EQ(unread_, truncation == Truncation::kRight) << longest;
    }
  }
}

TEST_F(Truncated, ATextOfJustTheLengthIsWhole) {
  const std::vector<int64_t> whole = *tokenizer_->Encode("the server answers");
  const auto longest = static_cast<int64_t>(whole.size());
  for (const Truncation truncation : {Truncation::kNone, Truncation::kLeft, Truncation::kRight}) {
    EXPECT_EQ(*Ids("the server answers", truncation, longest), whole);
  }
  EXPECT_EQ(whole.front(), 1);  // the marks
  EXPECT_EQ(whole.back(), 2);
}

TEST_F(Truncated, ATextThatIsTooLongIsRefusedBeforeItIsRead) {
  const auto refused = Ids(Repeated("the server answers ", 1 << 20), Truncation::kNone, 5);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(refused.status().message(),
              ::testing::HasSubstr("more than the 5 tokens that the model takes"));
  EXPECT_TRUE(unread_);
}

TEST_F(Truncated, HoldsNoMoreIdsThanAreKept) {
  const std::string text = Repeated("the server answers ", 1 << 20);
  TextEncoding encoding(*tokenizer_, text, Truncation::kLeft, 10);
  while (!encoding.done()) {
    size_t budget = 4 << 10;
    ASSERT_TRUE(encoding.Advance(budget).ok());
    EXPECT_LE(encoding.ids().size(), 64U << 10);
  }
}

}  // namespace
}  // namespace linserve
