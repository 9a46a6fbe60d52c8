#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/paths.h"
#include "support/test_files.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/test_texts.h"

namespace linserve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = std::vector<int64_t>;

TEST(Tokenizer, GivesTheIdsOfThePythonPackage) {
  const auto tokenizer = LoadSentencePiece(kTextData + "tokenizer.model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary(), 96);
  for (const auto& example : EncodedTexts()) {
    const auto ids = (*tokenizer)->Encode(example["text"].get<std::string>());
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, example["ids"].get<Ids>()) << example["text"];
  }
}

TEST(Tokenizer, ServesSeveralThreads) {
  const auto tokenizer = *LoadSentencePiece(kTextData + "tokenizer.model");
  const Ids expected = *tokenizer->Encode("the server answers");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_EQ(*tokenizer->Encode("the server answers"), expected);
    });
  }
}

TEST(Tokenizer, RefusesWhatIsNotUtf8) {
  const auto tokenizer = *LoadSentencePiece(kTextData + "tokenizer.model");
  for (const char* text : {"\xff", "caf\xe9", "\xc0\xaf", "\xed\xa0\x80"}) {
    const auto ids = tokenizer->Encode(text);
    EXPECT_TRUE(absl::IsInvalidArgument(ids.status()));
    EXPECT_THAT(ids.status().message(), HasSubstr("not UTF-8"));
  }
}

TEST(Tokenizer, SaysWhichFileIsNone) {
  EXPECT_TRUE(absl::IsNotFound(LoadSentencePiece(kTextData + "nothing.model").status()));
  const TempDir directory;
  for (const std::string& content :
       {std::string(), std::string("no model"), std::string(999, 'x')}) {
    const std::string path = directory.File("tokenizer.model");
    WriteAll(path, content);
    const auto status = LoadSentencePiece(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
}

TEST(Tokenizer, IsOfABoundedFile) {
  const TempDir directory;
  const std::string path = directory.File("tokenizer.model");
  WriteAll(path, "");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_THAT(LoadSentencePiece(path).status(), IsInvalid("is longer than"));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsNotFound(LoadSentencePiece(path).status()));
}

// These are the marks of tests/data/text/tokenizer.model.
constexpr int64_t kBos = 1;
constexpr int64_t kEos = 2;

std::shared_ptr<const Tokenizer> Marking(bool bos, bool eos) {
  return *LoadSentencePiece(kTextData + "tokenizer.model", {.add_bos = bos, .add_eos = eos});
}

TEST(Tokenizer, PutsTheMarksAroundATextThatAreAskedFor) {
  const std::string text = "the server answers";
  Ids expected = *Marking(false, false)->Encode(text);
  expected.insert(expected.begin(), kBos);
  EXPECT_EQ(*Marking(true, false)->Encode(text), expected);
  expected.push_back(kEos);
  EXPECT_EQ(*Marking(true, true)->Encode(text), expected);
  expected.erase(expected.begin());
  EXPECT_EQ(*Marking(false, true)->Encode(text), expected);
  EXPECT_THAT(*Marking(true, true)->Encode(""), IsEmpty());
}

TEST(Tokenizer, SaysWhichMarkAModelHasNot) {
  const std::string path = BundledModels() + "/sentence-encoder/1/tokenizer.model";
  const auto no_beginning = LoadSentencePiece(path, {.add_bos = true}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(no_beginning));
  EXPECT_THAT(no_beginning.message(), AllOf(HasSubstr(path), HasSubstr("add_bos")));
  const auto no_end = LoadSentencePiece(path, {.add_eos = true}).status();
  EXPECT_THAT(no_end.message(), HasSubstr("add_eos"));
}

TEST(Truncate, DropsTokensOnTheChosenSideOrRefuses) {
  const auto tokenizer = Marking(false, false);
  Ids ids = {11, 12, 13, 14};
  EXPECT_TRUE(Truncate(tokenizer->marks(), Truncation::kNone, 0, ids).ok());
  EXPECT_TRUE(Truncate(tokenizer->marks(), Truncation::kNone, 4, ids).ok());
  const absl::Status refused = Truncate(tokenizer->marks(), Truncation::kNone, 3, ids);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), HasSubstr("more than the 3 tokens that the model takes"));
  EXPECT_TRUE(Truncate(tokenizer->marks(), Truncation::kRight, 3, ids).ok());
  EXPECT_THAT(ids, ElementsAre(11, 12, 13));
  EXPECT_TRUE(Truncate(tokenizer->marks(), Truncation::kLeft, 2, ids).ok());
  EXPECT_THAT(ids, ElementsAre(12, 13));
}

TEST(Truncate, KeepsTheMarks) {
  const Ids whole = {kBos, 11, 12, 13, kEos};
  const auto cut = [&](Truncation truncation, int64_t longest) {
    Ids ids = whole;
    EXPECT_TRUE(Truncate(Marking(true, true)->marks(), truncation, longest, ids).ok());
    return ids;
  };
  EXPECT_EQ(cut(Truncation::kNone, 5), whole);
  EXPECT_THAT(cut(Truncation::kRight, 4), ElementsAre(kBos, 11, 12, kEos));
  EXPECT_THAT(cut(Truncation::kLeft, 4), ElementsAre(kBos, 12, 13, kEos));
  EXPECT_THAT(cut(Truncation::kLeft, 3), ElementsAre(kBos, 13, kEos));
  Ids one = {11, 12, 13, kEos};
  EXPECT_TRUE(Truncate(Marking(false, true)->marks(), Truncation::kRight, 2, one).ok());
  EXPECT_THAT(one, ElementsAre(11, kEos));
}

}  // namespace
}  // namespace linserve
