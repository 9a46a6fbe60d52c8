#include "text/static_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "support/test_files.h"
#include "text/huggingface/json_tokenizer.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Has words of 1, 2, 3, 3, 4 and 9 characters, and a mark around texts.
class StaticTextsTest : public ::testing::Test {
 protected:
  StaticTextsTest() {
    const json model = {
        {"type", "WordLevel"},
        {"unk_token", "?"},
        {"vocab", {{"?", 0}, {"ab", 1}, {"äöü", 2}, {"def", 3}, {"ghij", 4}, {"klmnopqrs", 5}}}};
    const json post = {{"type", "BertProcessing"}, {"sep", {"ab", 1}}, {"cls", {"def", 3}}};
    WriteAll(path_, json{{"model", model},
                         {"normalizer", {{"type", "Lowercase"}}},
                         {"pre_tokenizer", {{"type", "Whitespace"}}},
                         {"truncation", {{"max_length", 7}, {"direction", "Left"}}},
                         {"post_processor", post},
                         {"added_tokens", json::array()}}
                        .dump());
    WriteAll(directory_.File("tokenizer_config.json"),
             R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false, "unk_token": "ab"})");
    tokenizer_ = *LoadBareTokenizer(path_);
  }

  const TempDir directory_;
  const std::string path_ = directory_.File("tokenizer.json");
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(StaticTextsTest, AreReadByTheFileAloneAndWithoutMarks) {
  EXPECT_THAT(*tokenizer_->Encode("AB zz def"), ElementsAre(1, 0, 3));
  EXPECT_THAT(*tokenizer_->Encode(" "), IsEmpty());
  EXPECT_EQ(tokenizer_->longest(), 7);
  EXPECT_EQ(tokenizer_->truncation(), Truncation::kLeft);
  EXPECT_EQ(tokenizer_->unknown(), 0);
  EXPECT_FALSE(tokenizer_->pair());
  EXPECT_TRUE(absl::IsNotFound(LoadBareTokenizer(path_ + "x").status()));
}

TEST_F(StaticTextsTest, OfModel2VecAreReadAsFarAsTheMedianTokenGoes) {
  const StaticTexts texts({.as_model2vec = true}, *tokenizer_);
  const std::string text = "äöü ab def ghij";
  EXPECT_EQ(texts.Read(text, 2), "äöü ab");
  EXPECT_EQ(texts.Read(text, 1), "äöü");
  EXPECT_EQ(texts.Read(text, 5), text);
  EXPECT_EQ(texts.Read(text, 0), text);
  EXPECT_EQ(texts.Read(text, int64_t{1} << 62), text);
  const std::string broken = "abcdefgh\xFF";
  EXPECT_EQ(texts.Read(broken, 1), "abc");
  EXPECT_EQ(texts.Read("\xFF" + broken, 1), "\xFF" + broken);
}

TEST_F(StaticTextsTest, OfModel2VecLoseWhatIsUnknown) {
  std::vector<int64_t> ids = {0, 1, 0, 2};
  StaticTexts({.as_model2vec = false}, *tokenizer_).LeaveOut(ids);
  EXPECT_THAT(ids, ElementsAre(0, 1, 0, 2));
  StaticTexts({.as_model2vec = true}, *tokenizer_).LeaveOut(ids);
  EXPECT_THAT(ids, ElementsAre(1, 2));
}

TEST_F(StaticTextsTest, OfSentenceTransformersAreReadToTheirEnds) {
  EXPECT_EQ(StaticTexts({}, *tokenizer_).Read("äöü ab def ghij", 1), "äöü ab def ghij");
}

}  // namespace
}  // namespace linserve
