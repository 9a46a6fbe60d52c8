#include "telemetry/log.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "telemetry/log_format.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using namespace std::chrono_literals;

// This is 2026-01-02T03:04:05.678901Z.
constexpr LogTime kTime{std::chrono::sys_days{2026y / 1 / 2} + 3h + 4min + 5s + 678901us};

std::string Human(std::initializer_list<LogField> fields) {
  return FormatHuman(kTime, LogLevel::kInfo, "request finished", fields);
}

TEST(HumanLog, IsTimeLevelEventAndFields) {
  EXPECT_EQ(Human({{"rpc", "Embed"}, {"code", "OK"}}),
            "2026-01-02T03:04:05.678901Z INFO    request finished rpc=Embed code=OK");
  EXPECT_EQ(FormatHuman(kTime, LogLevel::kWarning, "queue full", {}),
            "2026-01-02T03:04:05.678901Z WARNING queue full");
}

TEST(HumanLog, WritesNumbersAndTruthValuesBare) {
  EXPECT_THAT(Human({{"tokens", int64_t{-7}}, {"ratio", 0.25}, {"cached", true}}),
              HasSubstr(" tokens=-7 ratio=0.25 cached=true"));
}

TEST(HumanLog, QuotesWhatCouldBeTakenForAnotherFieldOrLine) {
  EXPECT_THAT(Human({{"error", "a b"}}), HasSubstr(R"(error="a b")"));
  EXPECT_THAT(Human({{"error", ""}}), HasSubstr(R"(error="")"));
  EXPECT_THAT(Human({{"error", "x code=OK"}}), HasSubstr(R"(error="x code=OK")"));
  EXPECT_THAT(Human({{"error", "say \"hi\""}}), HasSubstr(R"(error="say \"hi\"")"));
  EXPECT_THAT(Human({{"error", "a\nb\r"}}), HasSubstr(R"(error="a\nb\r")"));
}

TEST(HumanLog, EscapesWhatATerminalWouldObeyAndBytesThatAreNoText) {
  EXPECT_THAT(Human({{"error", "\x1b[2J"}}), HasSubstr(R"(error="\u001b[2J")"));
  EXPECT_THAT(Human({{"error", "\xc2\x9b"}}), HasSubstr(R"(error="\u009b")"));
  EXPECT_THAT(Human({{"error", "\xff"}}), HasSubstr(R"(error="\ufffd")"));
}

TEST(JsonLog, KeepsTheTypesAndTheOrderOfTheFields) {
  EXPECT_EQ(FormatJson(kTime, LogLevel::kError, "batch failed",
                       {{"model", "m"}, {"size", int64_t{3}}, {"ratio", 0.5}, {"cuda", false}}),
            R"({"time":"2026-01-02T03:04:05.678901Z","severity":"ERROR","message":"batch failed",)"
            R"("model":"m","size":3,"ratio":0.5,"cuda":false})");
}

TEST(JsonLog, StaysOneParsableLineWhateverAFieldHolds) {
  const std::string line =
      FormatJson(kTime, LogLevel::kInfo, "request refused", {{"error", "\"}\n\xff\xc3"}});
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_EQ(nlohmann::json::parse(line)["error"], "\"}\n\uFFFD\uFFFD");
}

TEST(LogTexts, AreCutSinceLibrariesRepeatWhatCallersSend) {
  const std::string text(100'000, 'a');
  for (const auto format : {FormatHuman, FormatJson}) {
    const std::string line = format({}, LogLevel::kWarning, "grpc", {{"text", text}});
    EXPECT_NE(line.find(text.substr(0, 2000)), std::string::npos);
    EXPECT_LT(line.size(), 3000);
  }
}

TEST(LogTimes, RoundDownBeforeTheEpochToo) {
  EXPECT_THAT(FormatHuman(LogTime(-1us), LogLevel::kDebug, "e", {}),
              HasSubstr("1969-12-31T23:59:59.999999Z"));
}

class LogTest : public ::testing::Test {
 protected:
  void TearDown() override { ConfigureLog({}); }
};

TEST_F(LogTest, WritesTheChosenFormatToStandardOutput) {
  ::testing::internal::CaptureStdout();
  ConfigureLog({.level = LogLevel::kInfo, .format = LogFormat::kHuman});
  Log(LogLevel::kInfo, "hello", {{"to", "you"}});
  ConfigureLog({.level = LogLevel::kInfo, .format = LogFormat::kJson});
  Log(LogLevel::kInfo, "hello", {{"percent", "%v {}"}});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              MatchesRegex(
                  "[^ ]+Z INFO    hello to=you\n\\{\"time\":[^\n]*\"percent\":\"%v \\{\\}\"\\}\n"));
}

TEST_F(LogTest, WritesWarningsAndErrorsToStandardError) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  ConfigureLog({.level = LogLevel::kDebug, .format = LogFormat::kJson});
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    Log(level, "something");
  }
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              MatchesRegex("[^\n]*\"DEBUG\"[^\n]*\n[^\n]*\"INFO\"[^\n]*\n"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("[^\n]*\"WARNING\"[^\n]*\n[^\n]*\"ERROR\"[^\n]*\n"));
}

TEST_F(LogTest, SaysWhichLevelsAreWritten) {
  ConfigureLog({.level = LogLevel::kWarning});
  EXPECT_FALSE(Logs(LogLevel::kInfo));
  EXPECT_TRUE(Logs(LogLevel::kWarning));
}

TEST_F(LogTest, DropsWhatIsBelowTheLevel) {
  ::testing::internal::CaptureStderr();
  ConfigureLog({.level = LogLevel::kError});
  Log(LogLevel::kWarning, "quiet");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

TEST_F(LogTest, NeverMixesTheLinesOfTwoThreads) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  ::testing::internal::CaptureStdout();
  ConfigureLog({.format = LogFormat::kJson});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int64_t line = 0; line < kLines; ++line) Log(LogLevel::kInfo, "line", {{"n", line}});
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::istringstream lines(::testing::internal::GetCapturedStdout());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(nlohmann::json::parse(line)["message"], "line");
  }
  EXPECT_EQ(count, kThreads * kLines);
}

}  // namespace
}  // namespace linserve
