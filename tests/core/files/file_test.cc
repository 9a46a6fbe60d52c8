#include "core/files/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "support/test_files.h"

namespace linserve {
namespace {

std::string Contents(const InputFile& file, size_t offset, size_t size) {
  std::string bytes(size, '\0');
  const absl::Status status = file.Read(offset, reinterpret_cast<std::byte*>(bytes.data()), size);
  return status.ok() ? bytes : std::string(status.message());
}

TEST(InputFile, IsReadPieceByPiece) {
  const TempDir dir;
  WriteAll(dir.File("a"), "hello");
  const auto file = InputFile::Open(dir.File("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 5u);
  EXPECT_EQ(Contents(*file, 1, 3), "ell");
  EXPECT_EQ(Contents(*file, 0, 5), "hello");
  EXPECT_EQ(Contents(*file, 5, 0), "");
  EXPECT_TRUE(file->CheckUnchanged().ok());
}

TEST(InputFile, ThatIsTruncatedInPlaceIsAnErrorAndNoSignal) {
  const TempDir dir;
  WriteAll(dir.File("a"), std::string(100'000, 'x'));
  const auto file = InputFile::Open(dir.File("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Contents(*file, 90'000, 4), "xxxx");
  ASSERT_EQ(::truncate(dir.File("a").c_str(), 10), 0);
  std::byte byte{};
  EXPECT_THAT(file->Read(90'000, &byte, 1),
              IsStatus(absl::StatusCode::kDataLoss, "became shorter while it was read"));
  EXPECT_THAT(file->CheckUnchanged(), IsStatus(absl::StatusCode::kDataLoss, "was written to"));
}

TEST(InputFile, ThatIsReplacedIsReadAsItWas) {
  const TempDir dir;
  WriteAll(dir.File("a"), "old");
  const auto file = InputFile::Open(dir.File("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(ReplaceFile(dir.File("a"), {"new", " bytes"}).ok());
  EXPECT_EQ(Contents(*file, 0, 3), "old");
  EXPECT_TRUE(file->CheckUnchanged().ok());
}

TEST(ReadFile, GivesAllBytesUpToABound) {
  const TempDir dir;
  for (const size_t size : {0, 1, 65536, 65537, 200'000}) {
    const std::string bytes(size, 'x');
    WriteAll(dir.File("a"), bytes);
    const auto read = ReadFile(dir.File("a"), size);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, bytes);
    if (size == 0) continue;
    EXPECT_THAT(ReadFile(dir.File("a"), size - 1),
                IsInvalid("is longer than " + std::to_string(size - 1) + " bytes"));
  }
}

TEST(ReadFile, RefusesWhatIsNoRegularFileWithoutWaitingForIt) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadFile(dir.File("pipe"), 10), IsInvalid("expected a regular file"));
  EXPECT_THAT(InputFile::Open(dir.File("pipe")), IsInvalid("expected a regular file"));
  EXPECT_THAT(ReadFile(dir.File(""), 10), IsInvalid("expected a regular file"));
  EXPECT_THAT(ReadFile("/dev/zero", 10), IsInvalid("expected a regular file"));
  EXPECT_THAT(ReadFile("/dev/zero", 10, FileKind::kAny), IsInvalid("is longer than 10 bytes"));
}

TEST(ReadFile, ReadsAPipeWhereThatIsAskedFor) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  const std::jthread writer([&] { WriteAll(dir.File("pipe"), "hello"); });
  EXPECT_EQ(*ReadFile(dir.File("pipe"), 10, FileKind::kAny), "hello");
}

TEST(ReadFile, DoesNotFindWhatIsNotThere) {
  const TempDir dir;
  EXPECT_THAT(ReadFile(dir.File("none"), 10), IsStatus(absl::StatusCode::kNotFound, "none'"));
  EXPECT_THAT(InputFile::Open(dir.File("none")), IsStatus(absl::StatusCode::kNotFound, "none'"));
}

TEST(ReplaceFile, LeavesNothingButTheNewFile) {
  const TempDir dir;
  WriteAll(dir.File("a"), "old");
  ASSERT_TRUE(ReplaceFile(dir.File("a"), {"new", " bytes"}).ok());
  EXPECT_EQ(ReadAll(dir.File("a")), "new bytes");
  EXPECT_EQ(dir.FileCount(), 1u);
}

TEST(ReplaceFile, ReplacesWhatALinkLeadsTo) {
  const TempDir dir;
  WriteAll(dir.File("a"), "old");
  std::filesystem::create_symlink("a", dir.File("link"));
  ASSERT_TRUE(ReplaceFile(dir.File("link"), {"new"}).ok());
  EXPECT_EQ(ReadAll(dir.File("a")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.File("link")));
}

TEST(ReplaceFile, WritesIntoWhatIsNoFile) {
  const TempDir dir;
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = *ReadFile(pipe, 100, FileKind::kAny); });
  EXPECT_TRUE(ReplaceFile(pipe, {"new", " bytes"}).ok());
  reader.join();
  EXPECT_EQ(read, "new bytes");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::filesystem::create_symlink("/dev/full", dir.File("full"));
  EXPECT_THAT(ReplaceFile(dir.File("full"), {"x"}).message(), testing::HasSubstr("No space left"));
}

TEST(ReplaceFile, WritesIntoAFileWhosePlaceNoOtherCanTake) {
  const TempDir dir;
  const std::string path = dir.File(std::string(255, 'a'));  // beside which no name is longer
  WriteAll(path, "something old");
  ASSERT_TRUE(ReplaceFile(path, {"new"}).ok());
  EXPECT_EQ(ReadAll(path), "new");
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
