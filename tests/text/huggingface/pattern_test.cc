#include "text/huggingface/patterns/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "text/huggingface/patterns/regex_syntax.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Pattern Regex(const std::string& expression) {
  auto pattern = Pattern::FromJson({{"Regex", expression}});
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  return *std::move(pattern);
}

std::vector<std::string> Found(const Pattern& pattern, const std::string& text) {
  std::vector<ByteRange> matches;
  EXPECT_TRUE(pattern.Find(text, matches).ok());
  std::vector<std::string> found;
  for (const ByteRange& match : matches) {
    found.push_back(text.substr(match.begin, match.end - match.begin));
  }
  return found;
}

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The code of the patterns of words finds what ICU finds.
TEST(WordPatterns, AreWhatTheirExpressionsSay) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> parts = {" ",
                                          " ",
                                          "  ",
                                          "\n",
                                          "\r\n",
                                          "\t",
                                          "\xC2\xA0",
                                          "a",
                                          "Bc",
                                          "\xC3\xA9",
                                          "e\xCC\x81",
                                          "1",
                                          "23",
                                          "456",
                                          "\xC2\xBD",
                                          "'",
                                          "'s",
                                          "'S",
                                          "'ll",
                                          "'LL",
                                          "'re",
                                          "'x",
                                          "'\xC5\xBF",
                                          "!",
                                          "...",
                                          "\xE4\xBD\xA0",
                                          "\xF0\x9F\x98\x80",
                                          "\xE2\x80\x8D",
                                          "_",
                                          "(",
                                          "\x01",
                                          "\xE2\x80\xA8"};
  for (const std::string expression : {kGpt2, kCl100k, kQwen}) {
    const Pattern words = Regex(expression);
    ASSERT_NE(words.words(), nullptr) << expression;
    // With an empty branch that never counts, the expression is none that is known.
    const Pattern slow = Regex("(?:" + expression + ")");
    ASSERT_EQ(slow.words(), nullptr);
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      for (size_t left = random() % 12; left > 0; --left) text += parts[random() % parts.size()];
      ASSERT_EQ(Found(words, text), Found(slow, text)) << testing::PrintToString(text);
    }
  }
}

TEST(Pattern, FindsTextsAndExpressions) {
  const Pattern literal = *Pattern::FromJson({{"String", "a.a"}});
  EXPECT_THAT(Found(literal, "a.a.a aba"), ::testing::ElementsAre("a.a"));
  EXPECT_THAT(Found(Regex("a+"), "aab\xC3\xA9\xF0\x9F\x98\x80 a"),
              ::testing::ElementsAre("aa", "a"));
  EXPECT_THAT(Found(Regex("(?=b)"), "abab"), ::testing::ElementsAre("", ""));
  EXPECT_THAT(Found(Regex("\\w+"), "a_1\xC2\xBD \xE2\x80\x8D!"),
              ::testing::ElementsAre("a_1\xC2\xBD"));
}

TEST(Pattern, SaysWhatIsWrong) {
  for (const json& wrong : {json(), json("a"), json({{"Regex", 3}}), json({{"Other", "a"}})}) {
    EXPECT_THAT(Pattern::FromJson(wrong).status().message(), HasSubstr("neither"));
  }
  EXPECT_THAT(Pattern::FromJson({{"Regex", "(a"}}).status().message(),
              AllOf(HasSubstr("'(a'"), HasSubstr("none for ICU")));
  EXPECT_TRUE(Pattern::FromJson({{"Regex", std::string(4096, 'a')}}).ok());
  EXPECT_THAT(Pattern::FromJson({{"Regex", std::string(4097, 'a')}}).status().message(),
              HasSubstr("expected at most 4096"));
}

TEST(Pattern, RefusesByNameWhatTwoLibrariesUnderstandInTwoWays) {
  for (const std::string part : {"\\h", "\\R", "\\X", "\\K", "\\b{2}+", "\\1", "(?m)", "(?<name>a)",
                                 "[[:alpha:]]", "\\p{^L}", "\\p{Alnum}", "[]a]", "\\G"}) {
    const auto refused = Pattern::FromJson({{"Regex", "a" + part}});
    EXPECT_THAT(refused.status().message(), HasSubstr("do not both understand alike")) << part;
  }
  EXPECT_THAT(*ForIcu("\\s+|[^\\w]"), ::testing::StartsWith("\\s+|[^\\p{Alphabetic}\\p{M}"));
  EXPECT_THAT(*ForIcu("\\P{L}"), ::testing::StartsWith("[^\\p{L}\\x{1C89}-\\x{1C8A}"));
}

// An expression that goes back and forth, and one that has no room for where to go back to.
TEST(Pattern, TakesNoLongForAnyExpression) {
  const std::string text(64 << 10, 'a');
  for (const std::string expression : {"(a*)*b", "(?:a|a)*b", "a*b", "(?:aa|a)+(?:aa|a)+c"}) {
    std::vector<ByteRange> matches;
    const absl::Status status = Regex(expression).Find(text, matches);
    EXPECT_THAT(status.message(), HasSubstr("takes too long")) << expression;
  }
}

}  // namespace
}  // namespace linserve
