#include "text/text_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/strings/utf8.h"
#include "text/huggingface/tokenizers.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/test_texts.h"

namespace linserve {
namespace {

// Returns the text of the tokens, which come one by one.
std::string StreamedBy(const std::shared_ptr<const Tokenizer>& tokenizer,
                       const std::vector<int64_t>& ids) {
  TextStream stream(tokenizer);
  std::string text;
  for (const int64_t id : ids) text += stream.Add(id);
  return text + stream.Rest();
}

class TextStreamTest : public ::testing::Test {
 protected:
  std::string Streamed(const std::vector<int64_t>& ids) const {
    return StreamedBy(tokenizer_, ids);
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = *LoadSentencePiece(kTextData + "tokenizer.model");
};

TEST_F(TextStreamTest, TokensOneByOneGiveTheTextOfAll) {
  std::vector<int64_t> all;
  for (const auto& example : EncodedTexts()) {
    const auto ids = example["ids"].get<std::vector<int64_t>>();
    all.insert(all.end(), ids.begin(), ids.end());
    EXPECT_EQ(Streamed(ids), *tokenizer_->Decode(ids)) << example["text"];
    EXPECT_EQ(Streamed(all), *tokenizer_->Decode(all));
  }
  for (int i = 0; i < 2; ++i) all.insert(all.end(), all.begin(), all.end());
  ASSERT_GT(all.size(), 100U);  // so many that the first ones are forgotten
  EXPECT_EQ(Streamed(all), *tokenizer_->Decode(all));
}

// Most of these tokenizers make a token of each byte, and so rows of them that are longer than what
// a TextStream keeps.
TEST_F(TextStreamTest, CharactersOfSeveralTokensAreWholeHoweverManyFollowEachOther) {
  for (const std::string& name : TrainedNames()) {
    const auto tokenizer = TrainedTokenizer(name);
    for (const char* character : {"é", "ǃ", "語", "ꙮ", "🦩", "𓀀"}) {
      for (const std::string before : {"", "a", "two words"}) {
        std::string text = before;
        for (int i = 0; i < 50; ++i) text += character;
        const auto ids = *tokenizer->Encode(text);
        EXPECT_EQ(StreamedBy(tokenizer, ids), *tokenizer->Decode(ids)) << name << ": " << text;
      }
    }
  }
}

TEST_F(TextStreamTest, WhateverTokensComeEachPieceIsUtf8) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::string& name : TrainedNames()) {
    const auto tokenizer = TrainedTokenizer(name);
    for (int i = 0; i < 20; ++i) {
      TextStream stream(tokenizer);
      // Few different tokens, among which bytes follow each other that are no characters.
      const auto least = static_cast<int64_t>(random() % 256);
      for (int j = 0; j < 200; ++j) {
        const std::string piece = stream.Add(least + static_cast<int64_t>(random() % 64));
        ASSERT_TRUE(IsUtf8(piece)) << name;
      }
      ASSERT_TRUE(IsUtf8(stream.Rest())) << name;
    }
  }
}

TEST_F(TextStreamTest, WordsAreToldAsTheyCome) {
  TextStream stream(tokenizer_);
  const auto ids = *tokenizer_->Encode("the server answers");
  std::string text;
  for (const int64_t id : ids) {
    const std::string added = stream.Add(id);
    EXPECT_FALSE(added.empty() && id != ids[0]);
    text += added;
  }
  EXPECT_EQ(text, "the server answers");
  EXPECT_EQ(stream.Rest(), "");
}

TEST_F(TextStreamTest, IdsThatAreNoPiecesSayNothing) {
  EXPECT_EQ(Streamed({-1, 1 << 20, tokenizer_->vocabulary()}), "");
}

}  // namespace
}  // namespace linserve
