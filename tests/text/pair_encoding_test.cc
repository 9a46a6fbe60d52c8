// Two texts that are read together; tests/system/tokenizers/compare.py compares more of them with
// the package `tokenizers`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/test_files.h"
#include "text/hard_texts.h"
#include "text/huggingface/json_tokenizer.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/test_texts.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<int64_t>;

constexpr size_t kAll = std::numeric_limits<size_t>::max();

json Text(const char* id, int type) { return {{"Sequence", {{"id", id}, {"type_id", type}}}}; }
json Mark(const char* id, int type) { return {{"SpecialToken", {{"id", id}, {"type_id", type}}}}; }

// Reads pairs of texts of single letters: a is 1, b is 2 and so on. The mark 8 stands between two
// texts, and 9 behind them; one text has no marks.
class PairEncoding : public ::testing::Test {
 protected:
  PairEncoding() {
    const json letters = {{"?", 0}, {"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}};
    const json file = {{"model", {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", letters}}},
                       {"pre_tokenizer", {{"type", "Whitespace"}}},
                       {"post_processor",
                        {{"type", "TemplateProcessing"},
                         {"single", {Text("A", 0)}},
                         {"pair", {Text("A", 0), Mark("|", 0), Text("B", 1), Mark(".", 1)}},
                         {"special_tokens", {{"|", {{"ids", {8}}}}, {".", {{"ids", {9}}}}}}}}};
    WriteAll(directory_.File("tokenizer.json"), file.dump());
    WriteAll(directory_.File("tokenizer_config.json"),
             R"({"model_input_names": ["input_ids", "token_type_ids"]})");
    tokenizer_ = *LoadTokenizerJson(directory_.File("tokenizer.json"));
  }

  // Returns the ids of a pair that is read in turns of so many bytes, and keeps the types.
  absl::StatusOr<Ids> IdsOf(std::string_view first, std::string_view second,
                            Truncation truncation = Truncation::kNone, int64_t longest = 0,
                            size_t turn = kAll) {
    TextEncoding encoding(*tokenizer_, first, second, truncation, longest);
    EXPECT_EQ(encoding.left(), encoding.done() ? 0 : first.size() + second.size());
    absl::Status status;
    size_t spent = 0;
    while (status.ok() && !encoding.done()) {
      size_t budget = turn;
      status = encoding.Advance(budget);
      spent += turn - budget;
    }
    unread_ = spent < first.size() + second.size();
    if (status.ok()) status = encoding.Finish();
    if (!status.ok()) return status;
    types_ = encoding.types();
    return encoding.ids();
  }

  const TempDir directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Ids types_;
  bool unread_ = false;
};

TEST_F(PairEncoding, HasTheMarksAndTypesOfItsTemplate) {
  EXPECT_THAT(*IdsOf("a b", "c"), ElementsAre(1, 2, 8, 3, 9));
  EXPECT_THAT(types_, ElementsAre(0, 0, 0, 1, 1));
}

TEST_F(PairEncoding, HasTheMarksOfTextsThatAreEmpty) {
  EXPECT_THAT(*IdsOf("", "c"), ElementsAre(8, 3, 9));
  EXPECT_THAT(types_, ElementsAre(0, 1, 1));
  EXPECT_THAT(*IdsOf("a", ""), ElementsAre(1, 8, 9));
  EXPECT_THAT(*IdsOf("", ""), ElementsAre(8, 9));
}

TEST_F(PairEncoding, HasNoTypesWhereAllAreTheFirst) {
  const json file = {{"model", {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"?", 0}}}}}};
  WriteAll(directory_.File("tokenizer.json"), file.dump());
  tokenizer_ = *LoadTokenizerJson(directory_.File("tokenizer.json"));
  EXPECT_THAT(*IdsOf("a", "b"), ElementsAre(0, 0));
  EXPECT_THAT(types_, ElementsAre(0, 1));
  EXPECT_THAT(*IdsOf("a", ""), ElementsAre(0));
  EXPECT_THAT(types_, IsEmpty());
}

TEST_F(PairEncoding, LosesTokensOfBothTextsAtTheSideThatIsNamed) {
  EXPECT_THAT(*IdsOf("a b c", "d e f d", Truncation::kRight, 7), ElementsAre(1, 2, 8, 4, 5, 6, 9));
  EXPECT_THAT(types_, ElementsAre(0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(*IdsOf("a b c", "d e f d", Truncation::kLeft, 7), ElementsAre(2, 3, 8, 5, 6, 4, 9));
  EXPECT_THAT(*IdsOf("a b c", "d e f d", Truncation::kLeft, 9),
              ElementsAre(1, 2, 3, 8, 4, 5, 6, 4, 9));
}

TEST(LongestFirst, LeavesTheShorterTextWholeOrHalfTheRoom) {
  const auto kept = [](size_t first, size_t second) { return LongestFirst(first, second, 7); };
  using Counts = std::pair<size_t, size_t>;
  EXPECT_EQ(kept(0, 2), Counts(0, 2));
  EXPECT_EQ(kept(0, 8), Counts(0, 7));
  EXPECT_EQ(kept(8, 0), Counts(7, 0));
  EXPECT_EQ(kept(2, 8), Counts(2, 5));
  EXPECT_EQ(kept(8, 2), Counts(5, 2));
  EXPECT_EQ(kept(3, 4), Counts(3, 4));
  // The odd one goes to the longer text, and otherwise to the second.
  EXPECT_EQ(kept(4, 4), Counts(3, 4));
  EXPECT_EQ(kept(8, 9), Counts(3, 4));
  EXPECT_EQ(kept(9, 8), Counts(4, 3));
  EXPECT_EQ(LongestFirst(3, 3, 0), Counts(0, 0));
}

TEST_F(PairEncoding, GivesInTurnsWhatTheWholeTextsGive) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const std::string first = Repeated("a b c d ", random() % (i % 2 == 0 ? 60 : 30'000));
    const std::string second = Repeated("f e d ", random() % (i % 3 == 0 ? 60 : 30'000));
    const Truncation truncation = i % 5 < 2 ? Truncation::kLeft : Truncation::kRight;
    const auto longest = static_cast<int64_t>(2 + random() % (i % 7 == 0 ? 9000 : 90));
    Ids front = *tokenizer_->Encode(first);
    Ids back = *tokenizer_->Encode(second);
    const auto [of_first, of_second] =
        LongestFirst(front.size(), back.size(), static_cast<size_t>(longest - 2));
    for (auto& [ids, kept] : {std::pair(&front, of_first), std::pair(&back, of_second)}) {
      ASSERT_TRUE(Truncate(tokenizer_->marks(), truncation, static_cast<int64_t>(kept), *ids).ok());
      if (kept == 0) ids->clear();
    }
    front.push_back(8);
    front.insert(front.end(), back.begin(), back.end());
    front.push_back(9);
    const size_t turn = i % 4 == 0 ? kAll : 1 + random() % 3000;
    ASSERT_EQ(*IdsOf(first, second, truncation, longest, turn), front) << i << ' ' << longest;
  }
}

// As a query is, which is read together with many texts.
TEST_F(PairEncoding, IsTheSameWithAFirstTextThatWasReadBefore) {
  for (const Truncation truncation : {Truncation::kNone, Truncation::kLeft, Truncation::kRight}) {
    for (int64_t longest = 0; longest < 14; ++longest) {
      for (const char* first : {"", "a", "a b c", "a b c d e f a b"}) {
        TextEncoding before(*tokenizer_, first, "f", truncation, longest);
        size_t budget = kAll;
        ASSERT_TRUE(before.Advance(budget).ok());
        for (const char* second : {"", "b", "d e f", "f e d c b a f e d"}) {
          TextEncoding encoding(*tokenizer_, first, second, truncation, longest, before.first());
          EXPECT_LE(encoding.left(), std::string_view(second).size());
          budget = kAll;
          ASSERT_TRUE(encoding.Advance(budget).ok());
          const absl::Status status = encoding.Finish();
          const auto expected = IdsOf(first, second, truncation, longest);
          EXPECT_EQ(status, expected.status()) << first << "|" << second << longest;
          if (!status.ok()) continue;
          EXPECT_EQ(encoding.ids(), *expected) << first << "|" << second << longest;
        }
      }
    }
  }
}

TEST_F(PairEncoding, ReadsNoFurtherThanItsIdsDependOn) {
  const std::string text = Repeated("a b c d ", 100 << 10);
  ASSERT_TRUE(IdsOf("a", text, Truncation::kRight, 9).ok());
  EXPECT_TRUE(unread_);
  ASSERT_TRUE(IdsOf(text, "a", Truncation::kRight, 10).ok());
  EXPECT_TRUE(unread_);
  ASSERT_TRUE(IdsOf(text, "a", Truncation::kLeft, 10).ok());
  EXPECT_FALSE(unread_);
}

TEST_F(PairEncoding, OfTooManyTokensIsRefusedBeforeItIsRead) {
  const std::string text = Repeated("a b c d ", 1 << 20);
  for (const auto& [first, second] :
       {std::pair<std::string, std::string>(text, "a"), {"a", text}}) {
    EXPECT_THAT(IdsOf(first, second, Truncation::kNone, 5).status(),
                IsInvalid("more than the 5 tokens that the model takes"));
    EXPECT_TRUE(unread_);
  }
  EXPECT_TRUE(IdsOf("a b", "c", Truncation::kNone, 5).ok());
  EXPECT_FALSE(IdsOf("a b", "c", Truncation::kNone, 4).ok());
}

TEST_F(PairEncoding, IsRefusedWhereItsMarksHaveNoRoom) {
  EXPECT_THAT(*IdsOf("a", "b", Truncation::kRight, 2), ElementsAre(8, 9));
  for (const Truncation truncation : {Truncation::kLeft, Truncation::kRight}) {
    EXPECT_THAT(IdsOf("a", "b", truncation, 1).status(),
                IsInvalid("takes 1 tokens, fewer than the 2 marks"));
    EXPECT_TRUE(unread_);
  }
  EXPECT_THAT(IdsOf("", "", Truncation::kNone, 1).status(), IsInvalid("more than the 1 tokens"));
}

TEST_F(PairEncoding, RefusesATextThatIsNotUtf8) {
  EXPECT_THAT(IdsOf("\xFF", "a").status(), IsInvalid("not UTF-8"));
  EXPECT_THAT(IdsOf("a", "\xFF").status(), IsInvalid("not UTF-8"));
}

TEST_F(PairEncoding, IsNotOfATokenizerWhoseFilesSayNothingOfIt) {
  EXPECT_TRUE(tokenizer_->pair().has_value());
  EXPECT_FALSE((*LoadSentencePiece(kTextData + "tokenizer.model"))->pair().has_value());
}

}  // namespace
}  // namespace linserve
