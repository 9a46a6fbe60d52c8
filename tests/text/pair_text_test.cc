#include "text/pair_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/paths.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class PairTextTest : public ::testing::Test {
 protected:
  absl::StatusOr<PairText> Parse(const std::string& text) const {
    return PairText::Parse(text, *tokenizer_);
  }

  std::vector<int64_t> Encode(const std::string& text, Truncation truncation, int64_t longest,
                              const Marks& marks) const {
    TextEncoding encoding(*tokenizer_, text, truncation, longest, marks);
    size_t budget = std::numeric_limits<size_t>::max();
    EXPECT_TRUE(encoding.Advance(budget).ok());
    EXPECT_TRUE(encoding.Finish().ok());
    return encoding.ids();
  }

  const std::shared_ptr<const Tokenizer> tokenizer_ =
      *LoadSentencePiece(kTextData + "tokenizer.model");
};

TEST_F(PairTextTest, PutsThePromptTheQueryAndTheDocumentWhereTheTemplateSays) {
  const auto pair = Parse("<{prompt}> q: {query}\nd: {document}.");
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->Write("p", "{document}", "{query}"), "<p> q: {document}\nd: {query}");
  const auto without = Parse("q: {query} d: {document}");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->Write("p ", "x", "y"), "q: p x d: y");
  EXPECT_TRUE(without->marks().after.empty());
}

TEST_F(PairTextTest, CutsTheDocumentAndNeverWhatFollowsIt) {
  const auto pair = Parse("{query} {document} the server answers");
  ASSERT_TRUE(pair.ok()) << pair.status();
  const std::vector<int64_t> end = Encode(" the server answers", Truncation::kNone, 0, Marks());
  EXPECT_EQ(pair->marks().after, end);
  const std::string text = pair->Write("", "a server", "that answers all that is asked of it");
  const auto whole = Encode(text, Truncation::kNone, 0, Marks());
  const auto cut = Encode(text, Truncation::kRight, std::ssize(end) + 5, pair->marks());
  std::vector<int64_t> expected(whole.begin(), whole.begin() + 5);
  expected.insert(expected.end(), end.begin(), end.end());
  EXPECT_EQ(cut, expected);
}

TEST_F(PairTextTest, SaysWhatATemplateLacks) {
  for (const auto& [text, why] : {std::pair("{document}", "has no {query}"),
                                  {"{query}", "has no {document}"},
                                  {"{query} {document} {query}", "has {query} more than once"},
                                  {"{document} {query}", "in this order"},
                                  {"{query} {prompt} {document}", "in this order"}}) {
    EXPECT_THAT(Parse(text).status().message(), HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace linserve
