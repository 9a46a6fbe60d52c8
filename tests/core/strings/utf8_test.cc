#include "core/strings/utf8.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace linserve {
namespace {

// The JSON library refuses to write what is not UTF-8.
bool JsonTakes(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

TEST(IsUtf8, AgreesWithTheJsonLibrary) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string bytes(
      "\x00\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE"
      "\xEF\xF0\xF1\xF3\xF4\xF5\xFF",
      25);
  for (int i = 0; i < 50000; ++i) {
    std::string text(random() % 6, '\0');
    for (char& byte : text) byte = bytes[random() % bytes.size()];
    ASSERT_EQ(IsUtf8(text), JsonTakes(text)) << nlohmann::json::binary({text.begin(), text.end()});
  }
}

TEST(AsUtf8, KeepsWholeCharactersAlone) {
  EXPECT_EQ(AsUtf8(""), "");
  EXPECT_EQ(AsUtf8("a\xc3\xa9"), "a\xc3\xa9");
  EXPECT_EQ(AsUtf8("\xe6\x97\xff\xc3\xa9\xc3"), "???\xc3\xa9?");
}

TEST(Utf8Prefix, EndsWhereATextCeasesToBeUtf8) {
  EXPECT_EQ(Utf8Prefix("a\xc3\xa9\xff!"), 3U);
  EXPECT_EQ(Utf8Prefix("a\xc3"), 1U);
  EXPECT_EQ(Utf8Prefix(""), 0U);
}

TEST(CutAtCharacter, CutsBetweenCharacters) {
  EXPECT_EQ(CutAtCharacter("abc", 3), "abc");
  EXPECT_EQ(CutAtCharacter("ab\xc3\xa9", 3), "ab");
}

TEST(CharacterBytes, CountsTheFirstCharacter) {
  EXPECT_EQ(CharacterBytes(""), 0U);
  EXPECT_EQ(CharacterBytes("ab"), 1U);
  EXPECT_EQ(CharacterBytes("\xC3\xA9x"), 2U);
  EXPECT_EQ(CharacterBytes("\xE2\x96\x81"), 3U);
  EXPECT_EQ(CharacterBytes("\xF0\x9F\x98\x80"), 4U);
  EXPECT_EQ(CharacterBytes("\xA9"), 0U);
  EXPECT_EQ(CharacterBytes("\xE2\x96"), 0U);
}

TEST(CharacterBegin, GoesBackToTheFirstByte) {
  const std::string text = "a\xE2\x96\x81";
  EXPECT_EQ(CharacterBegin(text, 0), 0U);
  for (const size_t at : {1U, 2U, 3U}) EXPECT_EQ(CharacterBegin(text, at), 1U);
}

}  // namespace
}  // namespace linserve
