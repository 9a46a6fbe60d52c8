#include "core/text_bytes.h"

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
  EXPECT_THAT(*TextsIn(""), IsEmpty());
  std::string raw;
  const std::string large(70000, 'x');
  for (const std::string& text : {std::string("a\0b", 3), std::string(), large}) {
    AppendText(text, raw);
  }
  EXPECT_THAT(*TextsIn(raw), ElementsAre(std::string_view("a\0b", 3), "", large));
}

TEST(TextBytes, ThatEndTooSoonNameTheText) {
  std::string raw;
  AppendText("whole", raw);
  const size_t whole = raw.size();
  AppendText("cut", raw);
  for (size_t size = whole + 1; size < raw.size(); ++size) {
    const auto status = TextsIn(std::string_view(raw).substr(0, size)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << size;
    EXPECT_THAT(status.message(), HasSubstr("text 1 ends before its length")) << size;
  }
}

}  // namespace
}  // namespace linserve
