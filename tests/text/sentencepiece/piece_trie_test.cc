#include "text/sentencepiece/piece_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace linserve {
namespace {

TEST(PieceTrie, FindsWhatWasPutIntoIt) {
  const PieceTrie trie({{"a", 3}, {"ab", 0}, {"abcd", 7}, {"\xFF", 1}, {std::string("\0x", 2), 2}});
  EXPECT_EQ(trie.Find("a"), 3);
  EXPECT_EQ(trie.Find("ab"), 0);
  EXPECT_EQ(trie.Find("abc"), -1);
  EXPECT_EQ(trie.Find("\xFF"), 1);
  EXPECT_EQ(trie.Find(std::string("\0x", 2)), 2);
  EXPECT_EQ(trie.Find(""), -1);
  EXPECT_EQ(trie.LongestPrefix("abcx"), 2U);
  EXPECT_EQ(trie.LongestPrefix("abcde"), 4U);
  EXPECT_EQ(trie.LongestPrefix("xab"), 0U);
  EXPECT_TRUE(PieceTrie().empty());
  EXPECT_EQ(PieceTrie().LongestPrefix("a"), 0U);
}

TEST(PieceTrie, AgreesWithAMap) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto text = [&random] {
    std::string bytes(1 + random() % 4, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 5 * 63);
    return bytes;
  };
  std::map<std::string, int32_t> map;
  for (int32_t i = 0; i < 300; ++i) map.emplace(text(), i);
  const PieceTrie trie(std::vector<PieceTrie::Entry>(map.begin(), map.end()));
  for (int i = 0; i < 3000; ++i) {
    const std::string key = text();
    const auto found = map.find(key);
    EXPECT_EQ(trie.Find(key), found == map.end() ? -1 : found->second);
  }
}

}  // namespace
}  // namespace linserve
