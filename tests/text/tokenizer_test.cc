#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/test_files.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

const std::string kData = LINSERVE_TEST_DATA "/text/";

// As the Python package encodes them (sentencepiece 0.2.1).
nlohmann::json Encoded() { return nlohmann::json::parse(std::ifstream(kData + "encoded.json")); }

TEST(Tokenizer, GivesTheIdsOfThePythonPackage) {
  const auto tokenizer = Tokenizer::Load(kData + "tokenizer.model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary(), 96);
  for (const auto& example : Encoded()) {
    const auto ids = (*tokenizer)->Encode(example["text"].get<std::string>());
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, example["ids"].get<Ids>()) << example["text"];
  }
}

TEST(Tokenizer, ServesSeveralThreads) {
  const auto tokenizer = *Tokenizer::Load(kData + "tokenizer.model");
  const Ids expected = *tokenizer->Encode("the server answers");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_EQ(*tokenizer->Encode("the server answers"), expected);
    });
  }
}

TEST(Tokenizer, RefusesWhatIsNotUtf8) {
  const auto tokenizer = *Tokenizer::Load(kData + "tokenizer.model");
  for (const char* text : {"\xff", "caf\xe9", "\xc0\xaf", "\xed\xa0\x80"}) {
    const auto ids = tokenizer->Encode(text);
    EXPECT_TRUE(absl::IsInvalidArgument(ids.status()));
    EXPECT_THAT(ids.status().message(), HasSubstr("not UTF-8"));
  }
}

TEST(Tokenizer, SaysWhichFileIsNone) {
  EXPECT_TRUE(absl::IsNotFound(Tokenizer::Load(kData + "nothing.model").status()));
  const TempDir directory;
  for (const std::string& content :
       {std::string(), std::string("no model"), std::string(999, 'x')}) {
    const std::string path = directory.File("tokenizer.model");
    WriteAll(path, content);
    const auto status = Tokenizer::Load(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
}

TEST(Truncate, DropsTokensOnTheChosenSideOrRefuses) {
  Ids ids = {1, 2, 3, 4};
  EXPECT_TRUE(Truncate(Truncation::kNone, 0, ids).ok());
  EXPECT_TRUE(Truncate(Truncation::kNone, 4, ids).ok());
  const absl::Status refused = Truncate(Truncation::kNone, 3, ids);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), HasSubstr("has 4 tokens, but the model takes at most 3"));
  EXPECT_TRUE(Truncate(Truncation::kRight, 3, ids).ok());
  EXPECT_THAT(ids, ElementsAre(1, 2, 3));
  EXPECT_TRUE(Truncate(Truncation::kLeft, 2, ids).ok());
  EXPECT_THAT(ids, ElementsAre(2, 3));
}

}  // namespace
}  // namespace linserve
