#include "core/file.h"

#include <sys/stat.h>

#include "core/test_files.h"

namespace linserve {
namespace {

TEST(MapFile, GivesTheBytesOfAFile) {
  const TempDir dir;
  WriteAll(dir.File("a"), "hello");
  const auto file = MapFile(dir.File("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes), file->size), "hello");
}

TEST(MapFile, GivesNoBytesOfAnEmptyFile) {
  const TempDir dir;
  WriteAll(dir.File("a"), "");
  const auto file = MapFile(dir.File("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size, 0u);
}

TEST(MapFile, RefusesWhatIsNoRegularFileWithoutWaitingForIt) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(MapFile(dir.File("pipe")), IsInvalid("expected a regular file"));
  EXPECT_THAT(MapFile(dir.File("")), IsInvalid("expected a regular file"));
}

TEST(MapFile, DoesNotFindWhatIsNotThere) {
  const TempDir dir;
  EXPECT_THAT(MapFile(dir.File("none")), IsStatus(absl::StatusCode::kNotFound, "none'"));
}

TEST(ReplaceFile, LeavesMappingsOfTheOldFileAsTheyWere) {
  const TempDir dir;
  WriteAll(dir.File("a"), "old");
  const auto old = MapFile(dir.File("a"));
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(ReplaceFile(dir.File("a"), {"new", " bytes"}).ok());
  EXPECT_EQ(ReadAll(dir.File("a")), "new bytes");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(old->bytes), old->size), "old");
  EXPECT_EQ(dir.FileCount(), 1u);
}

TEST(ReplaceFile, ThatFailsLeavesNothingBehind) {
  const TempDir dir;
  EXPECT_THAT(ReplaceFile(dir.File("no/such"), {"x"}),
              IsStatus(absl::StatusCode::kNotFound, "no/such"));
  ASSERT_EQ(::mkdir(dir.File("directory").c_str(), 0700), 0);
  EXPECT_FALSE(ReplaceFile(dir.File("directory"), {"x"}).ok());
  EXPECT_EQ(dir.FileCount(), 1u);
}

}  // namespace
}  // namespace linserve
