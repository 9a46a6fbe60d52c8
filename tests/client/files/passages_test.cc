#include "client/files/passages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

TEST(Passages, AreParagraphsOnOneLineEach) {
  EXPECT_THAT(
      CutIntoPassages("This is the first paragraph, which has\n  two lines.\n\n \t\nThe second "
                      "one is long enough, too.\r\n",
                      600),
      ElementsAre(FieldsAre(1, "This is the first paragraph, which has two lines."),
                  FieldsAre(5, "The second one is long enough, too.")));
  EXPECT_THAT(CutIntoPassages("", 600), ElementsAre());
  EXPECT_THAT(CutIntoPassages("\n \n\n", 600), ElementsAre());
}

TEST(Passages, AHeadingGoesWithWhatFollowsIt) {
  EXPECT_THAT(CutIntoPassages("NAME\n\nls - list directory contents, sorted by name unless told "
                              "otherwise",
                              600),
              ElementsAre(FieldsAre(
                  1, "NAME ls - list directory contents, sorted by name unless told otherwise")));
}

TEST(Passages, LongParagraphsAreCutWhereASentenceEnds) {
  EXPECT_THAT(
      CutIntoPassages("One two three. Four five\nsix. Seven eight nine ten eleven twelve.", 30),
      ElementsAre(FieldsAre(1, "One two three. Four five six."),
                  FieldsAre(2, "Seven eight nine ten eleven"), FieldsAre(2, "twelve.")));
  EXPECT_THAT(CutIntoPassages("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b", 20),
              ElementsAre(FieldsAre(1, "aaaaaaaaaaaaaaaaaaaa"),
                          FieldsAre(1, "aaaaaaaaaaaaaaaaaaaa"), FieldsAre(1, "aaaaaaaa b")));
}

TEST(Passages, TextsWithoutSpacesAreCutWhereASentenceEndsToo) {
  EXPECT_THAT(CutIntoPassages("证书续期。无需重启！服务器", 31),
              ElementsAre(FieldsAre(1, "证书续期。无需重启！"), FieldsAre(1, "服务器")));
  EXPECT_THAT(CutIntoPassages("证书续期无需重启服务器", 10),
              ElementsAre(FieldsAre(1, "证书续"), FieldsAre(1, "期无需"), FieldsAre(1, "重启服"),
                          FieldsAre(1, "务器")));
  EXPECT_THAT(CutIntoPassages("\xFF\x80\x80\x80\x80\x80\x80", 3), ::testing::SizeIs(3));
}

}  // namespace
}  // namespace linserve
