// Compares with what the package tokenizers made: make_goldens.py in this folder.
#include <gtest/gtest.h>

#include "text/huggingface/tokenizers.h"
#include "text/text_encoding.h"
#include "text/text_stream.h"

namespace linserve {
namespace {

using Ids = std::vector<int64_t>;

class AsTokenizers : public ::testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json& golden_ = TokenizerGoldens()["tokenizers"][GetParam()];
  const std::vector<std::string> texts_ = TokenizerGoldens()["texts"];
  const std::shared_ptr<const Tokenizer> tokenizer_ = TrainedTokenizer(GetParam());
};

TEST_P(AsTokenizers, TextsHaveTheIdsOfThePackage) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto ids = tokenizer_->Encode(texts_[i]);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, golden_["ids"][i].get<Ids>()) << testing::PrintToString(texts_[i]);
  }
}

TEST_P(AsTokenizers, IdsHaveTheTextsOfThePackage) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    auto ids = golden_["ids"][i].get<Ids>();
    if (ids.empty()) ids = {0};
    EXPECT_EQ(*tokenizer_->Decode(ids), golden_["decoded"][i].get<std::string>());
  }
  const std::string with_marks = golden_["with_marks"];
  EXPECT_EQ(*tokenizer_->Decode(golden_["ids"][9].get<Ids>(), true), with_marks);
}

// Returns the ids of a text that is read in short turns, and where they stand.
TextTokens ReadInTurns(const Tokenizer& tokenizer, const std::string& text) {
  TextEncoding encoding(tokenizer, text, /*marks=*/true);
  while (!encoding.done()) {
    size_t budget = 1;
    EXPECT_TRUE(encoding.Advance(budget).ok());
  }
  EXPECT_TRUE(encoding.Finish().ok());
  return {encoding.ids(), encoding.places()};
}

TEST_P(AsTokenizers, ALongTextIsCutWhereThatChangesNothing) {
  const std::string text = TokenizerGoldens()["long"];
  const TextTokens tokens = ReadInTurns(*tokenizer_, text);
  uint64_t digest = 0;
  for (const int64_t id : tokens.ids) digest = digest * 31 + static_cast<uint64_t>(id) + 1;
  EXPECT_EQ(digest, golden_["long"].get<uint64_t>());
  ASSERT_EQ(tokens.places.size(), tokens.ids.size());
  size_t last = 0;
  for (const TokenPlace& place : tokens.places) {
    if (place.is_mark) continue;
    EXPECT_LE(place.begin, place.end);
    EXPECT_LE(place.end, text.size());
    EXPECT_LE(last, place.end);
    last = place.end;
  }
}

TEST_P(AsTokenizers, TokensOneByOneGiveTheTextOfAll) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto ids = golden_["ids"][i].get<Ids>();
    TextStream stream(tokenizer_);
    std::string text;
    for (const int64_t id : ids) text += stream.Add(id);
    // It forgets the beginning of longer ones, which some decoders treat as no other place.
    if (ids.size() >= 30) continue;
    EXPECT_EQ(text + stream.Rest(), *tokenizer_->Decode(ids));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AsTokenizers, ::testing::ValuesIn(TrainedNames()),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace linserve
