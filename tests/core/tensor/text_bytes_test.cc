#include "core/tensor/text_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TextBytes, HaveALengthBeforeEachText) {
  std::string raw;
  AppendText("abc", raw);
  AppendText("", raw);
  EXPECT_EQ(raw, std::string("\3\0\0\0abc\0\0\0\0", 11));
}

TEST(TextBytes, AreTakenApartIntoTheTextsThatWereAppended) {
  EXPECT_THAT(*TextsIn("", 0), IsEmpty());
  std::string raw;
  const std::string large(70000, 'x');
  for (const std::string& text : {std::string("a\0b", 3), std::string(), large}) {
    AppendText(text, raw);
  }
  EXPECT_THAT(*TextsIn(raw, 3), ElementsAre(std::string_view("a\0b", 3), "", large));
}

// A text takes four bytes at least, and its view four times as many.
TEST(TextBytes, AreNotTakenApartPastTheNumberThatIsExpected) {
  const std::string empty_ones(size_t{4} * 1000, '\0');
  EXPECT_EQ(TextsIn(empty_ones, 1000)->size(), 1000U);
  EXPECT_THAT(TextsIn(empty_ones, 999).status().message(), HasSubstr("more than 999 texts"));
}

TEST(TextBytes, ThatEndTooSoonNameTheText) {
  std::string raw;
  AppendText("whole", raw);
  const size_t whole = raw.size();
  AppendText("cut", raw);
  for (size_t size = whole + 1; size < raw.size(); ++size) {
    const auto status = TextsIn(std::string_view(raw).substr(0, size), 2).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << size;
    EXPECT_THAT(status.message(), HasSubstr("text 1 ends before its length")) << size;
  }
}

}  // namespace
}  // namespace linserve
