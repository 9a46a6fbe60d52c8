#include "core/strings/quote.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(Quoted, ShowsShortTextAsItIs) { EXPECT_EQ(Quoted("to_q.weight"), "'to_q.weight'"); }

TEST(Quoted, ShowsControlCharactersAsQuestionMarks) { EXPECT_EQ(Quoted("a\nb\x7f"), "'a?b?'"); }

TEST(Quoted, CutsLongText) {
  EXPECT_EQ(Quoted(std::string(64, 'a')), "'" + std::string(64, 'a') + "'");
  EXPECT_EQ(Quoted(std::string(1000, 'a')), "'" + std::string(64, 'a') + "...'");
}

TEST(Quoted, NeverCutsInsideACharacter) {
  EXPECT_EQ(Quoted(std::string(63, 'a') + "\xc3\xa4"), "'" + std::string(63, 'a') + "...'");
}

}  // namespace
}  // namespace linserve
