#include "config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "core/test_files.h"
#include "support/paths.h"

namespace linserve {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() { config_.Bind(table_); }
  ~ConfigTest() override { unsetenv("LINSERVE_REPLICAS"); }

  // A file of this text, deleted with the test.
  std::string File(const std::string& text) {
    path_ = directory_.File("config.json");
    std::ofstream(path_) << text;
    return path_;
  }

  std::string ErrorOf(const std::string& text) {
    return std::string(ReadConfig(File(text), {}, table_).message());
  }

  Config config_;
  OptionTable table_;
  TempDir directory_;
  std::string path_;
};

TEST_F(ConfigTest, ThePublishedFileHoldsEveryOptionWithItsDefault) {
  const auto defaults = table_.Describe();
  ASSERT_TRUE(ReadConfig(SourceFile("deploy/linserve.json"), {}, table_).ok());
  const auto published = table_.Describe();
  std::ifstream file(SourceFile("deploy/linserve.json"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (size_t i = 0; i < defaults.size(); ++i) {
    EXPECT_EQ(published[i].current, defaults[i].current) << defaults[i].name;
    EXPECT_NE(text.find('"' + defaults[i].name + "\":"), std::string::npos) << defaults[i].name;
  }
}

TEST_F(ConfigTest, AFlagWinsOverAVariableAndAVariableOverTheFile) {
  const std::string path = File(R"({"replicas": 2, "threads": 2, "max_batch_tokens": 2})");
  setenv("LINSERVE_REPLICAS", "3", 1);
  setenv("LINSERVE_THREADS", "3", 1);
  const absl::Status read = ReadConfig(path, {{"replicas", "4"}}, table_);
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
  const absl::Status status = ReadConfig(path, {}, table_);
  const auto warnings = MisspeltVariables(table_);
  unsetenv("LINSERVE_DEFAULTS");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config_.serving.max_batch_tokens, 1);
  EXPECT_EQ(config_.serving.threads, 2);
  EXPECT_EQ(config_.serving.replicas, 3);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ConfigTest, DefaultsThatAreMissingAreAnErrorThatNamesTheFile) {
  setenv("LINSERVE_DEFAULTS", "/no/defaults", 1);
  const absl::Status status = ReadConfig("", {}, table_);
  unsetenv("LINSERVE_DEFAULTS");
  EXPECT_NE(status.message().find("/no/defaults"), absl::string_view::npos);
}

TEST_F(ConfigTest, AVariableThatIsNearlyAnOptionsIsWarnedOf) {
  setenv("LINSERVE_MAX_BATCH_TOKEN", "5", 1);
  setenv("LINSERVE_REPLICAS", "2", 1);
  setenv("LINSERVE_SERVICE_HOST", "10.0.0.1", 1);
  const auto warnings = MisspeltVariables(table_);
  unsetenv("LINSERVE_MAX_BATCH_TOKEN");
  unsetenv("LINSERVE_SERVICE_HOST");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "the variable LINSERVE_MAX_BATCH_TOKEN is of no option; did you mean "
            "LINSERVE_MAX_BATCH_TOKENS?");
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
  const std::string error = std::string(ReadConfig("", {}, table_).message());
  EXPECT_NE(error.find("variable LINSERVE_REPLICAS"), std::string::npos) << error;
  EXPECT_NE(error.find("\"many\""), std::string::npos) << error;
}

TEST_F(ConfigTest, AMissingFileAndBrokenJsonAreErrorsThatNameTheFile) {
  EXPECT_NE(ReadConfig("/no/such/file", {}, table_).message().find("/no/such/file"),
            absl::string_view::npos);
  EXPECT_NE(ErrorOf("{\"replicas\": ").find(path_), std::string::npos);
  EXPECT_NE(ErrorOf("[1]").find("expected a JSON object"), std::string::npos);
}

TEST(SplitAddress, TakesHostsNumbersAndBracketedIpv6) {
  std::string host;
  int port = 0;
  ASSERT_TRUE(SplitAddress("grpc_address", "0.0.0.0:8500", host, port).ok());
  EXPECT_EQ(host, "0.0.0.0");
  EXPECT_EQ(port, 8500);
  ASSERT_TRUE(SplitAddress("grpc_address", "[::1]:0", host, port).ok());
  EXPECT_EQ(host, "::1");
  EXPECT_EQ(port, 0);
}

TEST(SplitAddress, RefusesWhatIsNoAddressNamingTheOption) {
  std::string host;
  int port = 0;
  for (const char* address : {"8500", "localhost", "host:", "host:x", "host:70000", "host:-1"}) {
    const absl::Status status = SplitAddress("http_address", address, host, port);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    EXPECT_NE(status.message().find("http_address"), absl::string_view::npos) << address;
  }
}

}  // namespace
}  // namespace linserve
