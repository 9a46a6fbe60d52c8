#include "client/load/report/load_warnings.h"

#include <gmock/gmock.h>

#include "client/load/load_sweep.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A report in which nothing is to be warned of: 100 answers in a second, of 10 ms.
LoadReport Good() {
  LoadReport report;
  report.requests = 100;
  report.within.requests = 100;
  report.seconds = 1;
  report.client_cpus = 2;
  report.client_seconds = 1;
  for (int i = 0; i < 100; ++i) report.latency.Record(10'000'000);
  return report;
}

std::vector<std::string> Texts(const LoadReport& report) {
  return Joined({{"", WarningsOf(report)}});
}

TEST(LoadWarnings, AreNoneWhereNothingIsWrong) { EXPECT_THAT(Texts(Good()), IsEmpty()); }

TEST(LoadWarnings, CallTheClientTheLimitIfItUsesTheProcessors) {
  LoadReport report = Good();
  report.client_cpu_seconds = 1.8;
  EXPECT_THAT(Texts(report), ElementsAre("the client is the limit (it used 90 % of this machine's "
                                         "processors); put the load on from several machines"));
  // What it could do at most is known better than what it used: it had time to wait.
  report.ceiling = 1000;
  EXPECT_THAT(Texts(report), IsEmpty());
}

TEST(LoadWarnings, CallTheClientTheLimitIfItComesNearItsCeiling) {
  LoadReport report = Good();
  report.ceiling = 150;
  EXPECT_THAT(Texts(report), IsEmpty());
  report.ceiling = 110;
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("110 requests/s out of a server that does "
                                                   "nothing, and 91 % of that here")));
}

TEST(LoadWarnings, AreOfARateThatIsNotReached) {
  LoadReport report = Good();
  report.requests = 115;
  EXPECT_THAT(Texts(report), IsEmpty()) << "a closed loop has no rate";
  report.open_loop = true;
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("(100.0 of 115.0 a second)")));
  report.requests = 109;
  EXPECT_THAT(Texts(report), IsEmpty());
}

TEST(LoadWarnings, TellHowLongTheServerCouldNotBeReached) {
  LoadReport report = Good();
  report.away_seconds = 0.05;
  EXPECT_THAT(Texts(report), IsEmpty());
  report.away_seconds = 0.42;
  EXPECT_THAT(Texts(report),
              ElementsAre(HasSubstr("the server could not be reached (for 0.4 of 1.0 s)")));
}

TEST(LoadWarnings, AreOfLateRequestsOnlyWhereThatIsMuchOfTheirLatency) {
  LoadReport report = Good();
  report.open_loop = true;
  for (int i = 0; i < 100; ++i) report.send_lag.Record(i < 97 ? 1000 : 5'000'000);
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("5.0 ms at p99, of a latency of 10.0 ms")));
  EXPECT_THAT(Texts(report)[0], testing::Not(HasSubstr("the limit")));
  for (int i = 0; i < 100; ++i) report.latency.Record(100'000'000);
  EXPECT_THAT(Texts(report), IsEmpty());
  report = Good();  // in a closed loop no request is late
  for (int i = 0; i < 100; ++i) report.send_lag.Record(5'000'000);
  EXPECT_THAT(Texts(report), IsEmpty());
}

TEST(LoadWarnings, AreOfResultsFromTheCache) {
  LoadReport report = Good();
  report.ok.sequences = 100;
  report.uncomputed = 35;
  EXPECT_THAT(Texts(report), IsEmpty());  // the server does not tell
  report.server_tells = true;
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("cache, since the load repeats its inputs (35 % "
                                                   "of the sequences); what was measured")));
}

TEST(LoadWarnings, AreOfMeasurementsShorterThanARequest) {
  LoadReport report;
  report.seconds = 1;
  report.Record(absl::OkStatus(), {});
  report.latency.Record(2'500'000'000);
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("(a request takes 2.5 s); measure for longer")));
  report.within.Add({});
  EXPECT_THAT(Texts(report), IsEmpty());
}

TEST(LoadWarnings, SayWhyNothingWasMeasured) {
  LoadReport report;
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("make --duration longer")));
  report.interrupted = true;
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("interrupted before")));
}

TEST(LoadWarnings, AreSaidOnceHoweverManyLoadsHaveThem) {
  LoadReport first = Good();
  first.client_cpu_seconds = 1.8;
  LoadReport second = Good();
  second.client_cpu_seconds = 1.9;
  const std::vector<SweepStep> steps = {{4, first}, {8, Good()}, {16, second}};
  EXPECT_THAT(
      Joined(WarningsOf(steps)),
      ElementsAre("the client is the limit (4 in flight: it used 90 % of this machine's "
                  "processors; 16 in flight: it used 95 % of this machine's processors); put "
                  "the load on from several machines"));
  auto of_two = WarningsOf(steps, "a");
  for (auto& named : WarningsOf(steps, "b")) of_two.push_back(named);
  EXPECT_THAT(Joined(of_two), ElementsAre(HasSubstr("16 in flight, b: it used 95 %")));
  const std::string text = ToText(steps, {});
  EXPECT_EQ(text.find("the client is the limit"), text.rfind("the client is the limit")) << text;
}

}  // namespace
}  // namespace linserve
