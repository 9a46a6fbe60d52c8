#include "client/load/report/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace linserve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoadReport, TellsEverythingInText) {
  LoadReport report;
  SequenceResult result;
  result.tokens = 100;
  result.timing.queue = milliseconds(3);
  result.timing.compute = milliseconds(5);
  result.timing.batch_sequences = 8;
  SequenceResult failed;
  failed.status = absl::InvalidArgumentError("NaN");
  report.Record(absl::OkStatus(), {result});
  report.Record(absl::OkStatus(), {result, failed});
  report.Record(absl::UnavailableError("draining"), {});
  report.within.Add({result});
  report.within.Add({result, failed});
  report.latency.Record(10'000'000);
  report.seconds = 2;
  report.client_cpu_seconds = 1;
  report.client_seconds = 2;
  report.client_cpus = 2;
  const std::string text = ToText(report);
  EXPECT_THAT(text, HasSubstr("2.00 s, 1 of 3 requests OK"));
  EXPECT_THAT(text, HasSubstr("1.0 sequences/s, 100 tokens/s, 0.5 requests/s"));
  EXPECT_THAT(text, HasSubstr("queue 3.000 ms, batch 0.000 ms, compute 5.000 ms, in batches of 8"));
  EXPECT_THAT(text, HasSubstr("client: 0.50 of 2 processors"));
  EXPECT_THAT(text, HasSubstr("failed: 1 requests UNAVAILABLE, 1 sequences INVALID_ARGUMENT"));
  EXPECT_THAT(text, HasSubstr("the first one: NaN"));
  EXPECT_THAT(text, Not(HasSubstr("warning")));
  const auto told = JsonOf(report);
  EXPECT_EQ(told["tokens_per_second"], 100);
  EXPECT_NEAR(told["latency_ms"]["p99"].get<double>(), 10, 0.05);
  EXPECT_EQ(told["request_errors"]["UNAVAILABLE"], 1);
}

TEST(LoadReport, TellsNoLatencyWhereNothingWasAnswered) {
  LoadReport report;
  report.Record(absl::UnavailableError("gone"), {});
  EXPECT_THAT(ToText(report), testing::ContainsRegex("\nlatency( +-){7}\n"));
}

TEST(LoadReport, LeavesOutWhatTheServerDoesNotTell) {
  LoadReport report;
  report.Record(absl::OkStatus(), {SequenceResult{}});
  EXPECT_THAT(ToText(report), Not(HasSubstr("server, mean")));
  const auto told = JsonOf(report);
  EXPECT_TRUE(told["server_ms"].is_null()) << told["server_ms"];
  EXPECT_TRUE(told["server_batch_sequences"].is_null());
}

TEST(LoadReport, TellsTheShareOfItsClientsCeiling) {
  LoadReport report;
  report.within.requests = 100;
  report.seconds = 1;
  EXPECT_THAT(ToText(report), Not(HasSubstr("a server that does nothing")));
  report.ceiling = 1000;
  EXPECT_THAT(ToText(report),
              HasSubstr("10.0 % of the 1000 requests/s that it gets out of a server that does"));
}

// Answers of a sequence each, of which some were in no batch.
LoadReport ReportWithCache(int computed, int cached) {
  LoadReport report;
  report.server_tells = true;
  SequenceResult result;
  result.timing.batch_sequences = 4;
  for (int i = 0; i < computed; ++i) report.Record(absl::OkStatus(), {result});
  for (int i = 0; i < cached; ++i) report.Record(absl::OkStatus(), {SequenceResult{}});
  return report;
}

TEST(LoadReport, TellsWhatTheCacheOfTheServerHad) {
  const LoadReport half = ReportWithCache(3, 3);
  EXPECT_EQ(half.cached_share(), 0.5);
  EXPECT_EQ(half.batch_size(), 4.0);  // of those that were computed
  EXPECT_THAT(ToText(half), HasSubstr("cache had 50.0 % of the sequences' results"));
  EXPECT_EQ(JsonOf(half)["server_cached_share"], 0.5);
  EXPECT_EQ(ReportWithCache(0, 2).cached_share(), 1.0);
  EXPECT_EQ(ReportWithCache(3, 0).cached_share(), 0.0);
  EXPECT_THAT(ToText(ReportWithCache(3, 0)), Not(HasSubstr("cache")));
  // A server that tells of no batches tells of no cache.
  LoadReport silent = ReportWithCache(0, 2);
  silent.server_tells = false;
  EXPECT_EQ(silent.cached_share(), std::nullopt);
  EXPECT_TRUE(JsonOf(silent)["server_cached_share"].is_null());
}

TEST(LoadReport, TellsPercentilesOnlyWhereThreeAnswersLieBeyond) {
  for (const auto& [fraction, least] :
       {std::pair(0.5, 6), std::pair(0.9, 30), std::pair(0.99, 300), std::pair(0.999, 3000)}) {
    EXPECT_TRUE(Tells(static_cast<uint64_t>(least), fraction)) << fraction;
    EXPECT_FALSE(Tells(static_cast<uint64_t>(least) - 1, fraction)) << fraction;
  }
  LoadReport report;
  for (int i = 0; i < 100; ++i) report.latency.Record(10'000'000);
  EXPECT_EQ(JsonOf(report)["latency_told"], nlohmann::json({"p50", "p90", "p95"}));
  const std::string text = ToText(report);
  const size_t begin = text.find("\nlatency") + 1;
  const std::string row = text.substr(begin, text.find('\n', begin) - begin);
  EXPECT_EQ(std::count(row.begin(), row.end(), '-'), 2) << text;  // p99 and p99.9
}

TEST(LoadReport, OfNothingIsAllZero) {
  EXPECT_THAT(ToText({}), HasSubstr("0.0 sequences/s"));
  EXPECT_EQ(JsonOf(LoadReport()).at("requests"), 0);
}

}  // namespace
}  // namespace linserve
