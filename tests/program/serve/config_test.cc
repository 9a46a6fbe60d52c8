#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "program/serve/settings.h"
#include "support/paths.h"
#include "support/test_files.h"

namespace linserve {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() { config_.Bind(table_); }
  ~ConfigTest() override { unsetenv("LINSERVE_REPLICAS"); }

  // Makes a file of this text, deleted with the test.
  std::string File(const std::string& text) {
    path_ = directory_.File("config.json");
    std::ofstream(path_) << text;
    return path_;
  }

  static std::string ReadWhole(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string ErrorOf(const std::string& text) {
    return std::string(ReadConfig({File(text)}, table_).message());
  }

  Config config_;
  OptionTable table_;
  TempDir directory_;
  std::string path_;
};

TEST_F(ConfigTest, ThePublishedFileIsWhatTheProgramWrites) {
  EXPECT_EQ(ReadWhole(SourceFile("deploy/linserve.json")), ToFile(table_, /*comments=*/true));
}

TEST_F(ConfigTest, TheFileThatIsWrittenReadsAsWhatItWasWrittenFrom) {
  config_.drain_delay = std::chrono::milliseconds(1500);
  config_.http.pages = ListenAddress{"::1", 9090};
  config_.serving.padding = "bucket";
  config_.repository.versions = *VersionPolicy::Parse("latest; ranker=all");
  const std::string file = ToFile(table_, /*comments=*/true);
  Config other;
  OptionTable table;
  other.Bind(table);
  ASSERT_TRUE(ReadConfig({File(file)}, table).ok());
  EXPECT_EQ(ToFile(table, /*comments=*/true), file);
  EXPECT_EQ(other.drain_delay, config_.drain_delay);
}

TEST_F(ConfigTest, AFlagWinsOverAVariableAndAVariableOverTheFile) {
  const std::string path = File(R"({"replicas": 2, "threads": 2, "max_batch_tokens": 2})");
  setenv("LINSERVE_REPLICAS", "3", 1);
  setenv("LINSERVE_THREADS", "3", 1);
  const absl::Status read = ReadConfig({path, {{"replicas", "4"}}}, table_);
  unsetenv("LINSERVE_REPLICAS");
  unsetenv("LINSERVE_THREADS");
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(config_.serving.replicas, 4);
  EXPECT_EQ(config_.serving.threads, 3);
  EXPECT_EQ(config_.serving.max_batch_tokens, 2);
}

TEST_F(ConfigTest, AnImagesDefaultsGiveWayToEverythingElse) {
  const std::string defaults = directory_.File("defaults.json");
  std::ofstream(defaults) << R"({"threads": 1, "max_batch_tokens": 1, "replicas": 1})";
  const std::string path = File(R"({"threads": 2})");
  setenv("LINSERVE_DEFAULTS", defaults.c_str(), 1);
  setenv("LINSERVE_REPLICAS", "3", 1);
  const absl::Status status = ReadConfig({path}, table_);
  unsetenv("LINSERVE_DEFAULTS");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config_.serving.max_batch_tokens, 1);
  EXPECT_EQ(config_.serving.threads, 2);
  EXPECT_EQ(config_.serving.replicas, 3);
}

TEST_F(ConfigTest, DefaultsThatAreMissingAreAnErrorThatNamesTheFile) {
  setenv("LINSERVE_DEFAULTS", "/no/defaults", 1);
  const absl::Status status = ReadConfig({}, table_);
  unsetenv("LINSERVE_DEFAULTS");
  EXPECT_NE(status.message().find("/no/defaults"), absl::string_view::npos);
}

TEST_F(ConfigTest, AFileThatIsTooLongOrTooDeepIsAnError) {
  EXPECT_NE(ErrorOf("{}" + std::string(1 << 20, ' ')).find("longer than 1048576 bytes"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(100'000, '[')).find("nested more than 64 deep"), std::string::npos);
}

TEST_F(ConfigTest, TheModeOfASocketIsWrittenAsChmodTakesIt) {
  EXPECT_TRUE(ReadConfig({File(R"({"grpc_unix_socket_mode": "660"})")}, table_).ok());
  EXPECT_EQ(config_.grpc.unix_socket.mode, 0660U);
  for (const char* mode : {"", "8", "1000", "u+w", "0x1ff", "-1", "00000000000000000000600x"}) {
    const std::string error = ErrorOf(std::string(R"({"grpc_unix_socket_mode": ")") + mode + "\"}");
    EXPECT_NE(error.find("expected permissions such as 0600 or 0660"), std::string::npos) << error;
  }
}

TEST_F(ConfigTest, AKeyThatStandsTwiceIsAnError) {
  const std::string error = ErrorOf(R"({"replicas": 1, "replicas": 2})");
  EXPECT_NE(error.find(path_ + ": the key 'replicas' stands twice"), std::string::npos) << error;
}

TEST_F(ConfigTest, AnUnknownKeyIsAnErrorThatNamesItAndWhatItResembles) {
  const std::string error = ErrorOf(R"({"max_batch_token": 5})");
  EXPECT_NE(error.find("unknown option \"max_batch_token\""), std::string::npos) << error;
  EXPECT_NE(error.find("\"max_batch_tokens\""), std::string::npos) << error;
  EXPECT_NE(error.find(path_), std::string::npos) << error;
}

TEST_F(ConfigTest, AValueOutOfRangeIsAnErrorWithKeyValueAndRange) {
  const std::string error = ErrorOf(R"({"replicas": 257})");
  EXPECT_NE(error.find("\"replicas\" is 257, expected an integer from 0 to 256"), std::string::npos)
      << error;
}

TEST_F(ConfigTest, AVariableOutOfRangeIsNamedInTheError) {
  setenv("LINSERVE_REPLICAS", "many", 1);
  const std::string error = std::string(ReadConfig({}, table_).message());
  EXPECT_NE(error.find("variable LINSERVE_REPLICAS"), std::string::npos) << error;
  EXPECT_NE(error.find("\"many\""), std::string::npos) << error;
}

TEST_F(ConfigTest, AMissingFileAndBrokenJsonAreErrorsThatNameTheFile) {
  EXPECT_NE(ReadConfig({"/no/such/file"}, table_).message().find("/no/such/file"),
            absl::string_view::npos);
  EXPECT_NE(ErrorOf("{\"replicas\": ").find(path_), std::string::npos);
  EXPECT_NE(ErrorOf("[1]").find("expected a JSON object"), std::string::npos);
}

}  // namespace
}  // namespace linserve
