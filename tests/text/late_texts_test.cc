#include "text/late_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "support/test_files.h"
#include "text/huggingface/json_tokenizer.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Has words of its own, of which "[Q] " and "[m]" are split in texts.
class LateTextsTest : public ::testing::Test {
 protected:
  LateTextsTest() {
    const json model = {
        {"type", "WordLevel"},
        {"unk_token", "?"},
        {"vocab",
         {{"?", 0}, {"a", 1}, {".", 2}, {"[", 3}, {"]", 4}, {"m", 5}, {"[m]", 6}, {"q", 7}}}};
    const json prefix = {{"content", "[Q] "}, {"id", 8},         {"single_word", false},
                         {"lstrip", false},   {"rstrip", false}, {"normalized", true},
                         {"special", false}};
    WriteAll(directory_.File("tokenizer.json"), json{{"model", model},
                                                     {"normalizer", {{"type", "Lowercase"}}},
                                                     {"pre_tokenizer", {{"type", "Whitespace"}}},
                                                     {"added_tokens", json::array({prefix})}}
                                                    .dump());
    WriteAll(directory_.File("tokenizer_config.json"), R"({"eos_token": "."})");
    tokenizer_ = Loaded();
  }

  std::shared_ptr<const Tokenizer> Loaded(const std::vector<std::string>& whole = {}) const {
    return *LoadTokenizerJson(directory_.File("tokenizer.json"), whole);
  }

  LateText Read(const LateInteraction& settings, TextTask task) const {
    return LateTexts::Of(settings, *tokenizer_)->Read(task, {1, 2, 1});
  }

  const TempDir directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(LateTextsTest, AreQueriesByTheNameOfTheirPromptAlone) {
  EXPECT_EQ(TaskOf(""), TextTask::kNone);
  EXPECT_EQ(TaskOf("query"), TextTask::kQuery);
  for (const char* name : {"document", "passage", "corpus", "s2p"}) {
    EXPECT_EQ(TaskOf(name), TextTask::kDocument);
  }
}

TEST_F(LateTextsTest, OfQueriesAreFilledUp) {
  LateInteraction settings{.query_tokens = 5, .expansion = QueryExpansion{.length = 5}};
  LateText text = Read(settings, TextTask::kQuery);
  EXPECT_THAT(text.ids, ElementsAre(1, 2, 1, 2, 2));
  EXPECT_THAT(text.seen, ElementsAre(true, true, true, false, false));
  EXPECT_THAT(text.given, IsEmpty());
  settings.expansion = {.length = 4, .attended = true, .token = "[m]"};
  text = Read(settings, TextTask::kQuery);
  EXPECT_THAT(text.ids, ElementsAre(1, 2, 1, 6));
  EXPECT_THAT(text.seen, IsEmpty());
  settings.expansion->length = 2;
  EXPECT_THAT(Read(settings, TextTask::kQuery).ids, ElementsAre(1, 2, 1));
  for (const TextTask task : {TextTask::kNone, TextTask::kDocument}) {
    EXPECT_THAT(Read(settings, task).ids, ElementsAre(1, 2, 1));
  }
  settings.expansion->token = "[n]";
  EXPECT_THAT(LateTexts::Of(settings, *tokenizer_), IsInvalid("has no token '[n]'"));
}

TEST_F(LateTextsTest, WithoutATaskAreDocumentsOfWhichTokensCountNot) {
  LateInteraction settings{.skipped = {".", "no word of it"}};
  EXPECT_THAT(Read(settings, TextTask::kDocument).given, ElementsAre(true, false, true));
  EXPECT_THAT(Read(settings, TextTask::kNone).given, ElementsAre(true, false, true));
  EXPECT_THAT(Read(settings, TextTask::kQuery).given, IsEmpty());
  settings.skips_in_queries = true;
  settings.skips_in_documents = false;
  EXPECT_THAT(Read(settings, TextTask::kQuery).given, ElementsAre(true, false, true));
  EXPECT_THAT(Read(settings, TextTask::kNone).given, IsEmpty());
}

TEST_F(LateTextsTest, HaveAsManyTokensAsTheirTaskAllows) {
  const auto most = [this](const LateInteraction& settings, TextTask task) {
    return LateTexts::Of(settings, *tokenizer_)->MostTokens(task);
  };
  LateInteraction settings{.query_tokens = 3, .document_tokens = 9};
  EXPECT_EQ(most(settings, TextTask::kQuery), 3);
  EXPECT_EQ(most(settings, TextTask::kDocument), 9);
  EXPECT_EQ(most(settings, TextTask::kNone), std::nullopt);
  EXPECT_EQ(most({}, TextTask::kQuery), std::nullopt);
}

TEST_F(LateTextsTest, BeginWithPrefixesThatAreOneTokenEach) {
  const LateInteraction settings{.prefixes = {"[Q] ", "[m] ", "a ", "unknown ", " ", ""}};
  const auto split = SplitPrefixes(settings, *tokenizer_);
  EXPECT_THAT(split, ElementsAre("[Q] ", "[m]"));
  EXPECT_THAT(*tokenizer_->Encode("[m] a"), ElementsAre(3, 5, 4, 1));
  const auto whole = Loaded(split);
  EXPECT_THAT(*whole->Encode("[Q] a"), ElementsAre(8, 1));
  EXPECT_THAT(*whole->Encode("[m] a"), ElementsAre(6, 1));
  EXPECT_THAT(SplitPrefixes(settings, *whole), IsEmpty());
}

}  // namespace
}  // namespace linserve
