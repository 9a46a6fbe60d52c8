#include "client/load/report/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace linserve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoadReport, WarnsWhereTheClientIsMeasured) {
  LoadReport report;
  report.requests = 1;
  report.within.requests = 100;
  report.seconds = 1;
  report.client_cpus = 2;
  EXPECT_THAT(ToText(report), Not(HasSubstr("a server that does nothing")));
  report.ceiling = 1000;
  EXPECT_THAT(ToText(report),
              HasSubstr("10.0 % of the 1000 requests/s that it gets out of a server that does"));
  EXPECT_THAT(report.Warnings(), ::testing::IsEmpty());
  report.ceiling = 110;
  EXPECT_THAT(ToText(report), HasSubstr("warning: the client gets 110 requests/s out of"));
}

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
  const auto json = JsonOf(report);
  EXPECT_EQ(json["tokens_per_second"], 100);
  EXPECT_NEAR(json["latency_ms"]["p99"].get<double>(), 10, 0.05);
  EXPECT_EQ(json["request_errors"]["UNAVAILABLE"], 1);
}

TEST(LoadReport, LeavesOutWhatTheServerDoesNotTell) {
  LoadReport report;
  report.Record(absl::OkStatus(), {SequenceResult{}});
  EXPECT_THAT(ToText(report), Not(HasSubstr("server, mean")));
  const auto json = JsonOf(report);
  EXPECT_TRUE(json["server_ms"].is_null()) << json["server_ms"];
  EXPECT_TRUE(json["server_batch_sequences"].is_null());
}

TEST(LoadReport, WarnsWhenTheClientIsTheLimit) {
  LoadReport report;
  report.open_loop = true;
  report.requests = 1;
  report.seconds = 1;
  report.client_cpus = 2;
  report.client_cpu_seconds = 1.8;
  report.client_seconds = 1;
  for (int i = 0; i < 100; ++i) report.send_lag.Record(i < 97 ? 1000 : 5'000'000);
  const auto warnings = report.Warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("p99 5.0 ms"));
  EXPECT_THAT(warnings[1], HasSubstr("90 %"));
}

TEST(LoadReport, WarnsWhenTheMeasurementIsShorterThanARequest) {
  LoadReport report;
  report.seconds = 1;
  report.Record(absl::OkStatus(), {});
  report.latency.Record(2'500'000'000);
  EXPECT_THAT(report.Warnings(), testing::ElementsAre(HasSubstr("longer than 2.5 s")));
  report.within.Add({});
  EXPECT_THAT(report.Warnings(), testing::IsEmpty());
}

TEST(LoadReport, SaysWhyNothingWasMeasured) {
  LoadReport report;
  EXPECT_THAT(report.Warnings(), testing::ElementsAre(HasSubstr("make --duration longer")));
  report.interrupted = true;
  EXPECT_THAT(report.Warnings(), testing::ElementsAre(HasSubstr("interrupted before")));
}

TEST(LoadReport, OfNothingIsAllZero) {
  EXPECT_THAT(ToText({}), HasSubstr("0.0 sequences/s"));
  EXPECT_EQ(JsonOf(LoadReport()).at("requests"), 0);
}

}  // namespace
}  // namespace linserve
