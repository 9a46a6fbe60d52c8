#include "client/load/report/objective.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "client/load/load_sweep.h"
#include "support/test_files.h"

namespace linserve {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// Reports requests that took so many milliseconds each, in a second, and some that failed.
LoadReport ReportOf(const std::vector<uint64_t>& latencies, int failed = 0) {
  LoadReport report;
  report.seconds = 1;
  report.open_loop = true;
  for (const uint64_t latency : latencies) {
    report.Record(absl::OkStatus(), {SequenceResult{}});
    report.latency.Record(latency * kMillisecond);
    ++report.within.requests;
  }
  for (int i = 0; i < failed; ++i) report.Record(absl::UnavailableError("gone"), {});
  return report;
}

TEST(Objective, IsAboutTheLatency) {
  const LoadReport report = ReportOf({10, 10, 10, 40});
  for (const char* text : {"p50=20ms", "p50=0.02s", "max=50ms", "mean=18ms", "p99=50000us"}) {
    EXPECT_TRUE(Objective::Parse(text)->Met(report)) << text;
  }
  for (const char* text : {"p50=9ms", "p90=20ms", "max=30ms", "mean=17ms", "p99.9=1ms"}) {
    EXPECT_FALSE(Objective::Parse(text)->Met(report)) << text;
  }
  EXPECT_EQ(Objective::Parse("mean=17ms")->Verdict(report), "mean=17ms: missed, 17.50 ms");
  EXPECT_THAT(Objective::Parse("p99=50ms")->Verdict(report),
              testing::HasSubstr("of too few requests to tell (4)"));
}

TEST(Objective, IsAboutTheShareOfErrorsToo) {
  const LoadReport report = ReportOf({10, 10, 10}, 1);
  EXPECT_TRUE(Objective::Parse("errors=25%")->Met(report));
  EXPECT_FALSE(Objective::Parse("errors=24.9%")->Met(report));
  LoadReport partly = ReportOf({10});
  SequenceResult failed;
  failed.status = absl::InternalError("a fault");
  partly.Record(absl::OkStatus(), {SequenceResult{}, failed});
  EXPECT_DOUBLE_EQ(Objective::Parse("errors=0%")->Measured(partly), 0.5);
}

TEST(Objective, OfATimeIsNotKeptToByRequestsThatFail) {
  const LoadReport report = ReportOf({10, 10, 10}, 1);
  EXPECT_TRUE(Objective::Parse("p50=20ms")->Met(report));
  EXPECT_FALSE(Objective::Parse("p90=20ms")->Met(report));
  EXPECT_EQ(Objective::Parse("max=1s")->Verdict(report), "max=1s: missed, 1 of 4 requests failed");
}

TEST(Objective, IsNotMetWhereNothingWasMeasured) {
  EXPECT_FALSE(Objective::Parse("p99=1s")->Met(ReportOf({})));
  EXPECT_FALSE(Objective::Parse("p99=1s")->Met(ReportOf({}, 3)));
  EXPECT_FALSE(Objective::Parse("errors=99%")->Met(ReportOf({})));
}

TEST(Objective, SaysThatAllFailedWhereNothingWasAnswered) {
  for (const char* text : {"mean=1s", "max=1s", "p99=1s"}) {
    EXPECT_THAT(Objective::Parse(text)->Verdict(ReportOf({}, 1)),
                testing::HasSubstr("missed, 1 of 1 requests failed"));
  }
}

TEST(Objective, ThatIsNoneIsRefused) {
  for (const char* text : {"", "p99", "p99=", "p99=20", "p99=20min", "p98=20ms", "errors=1",
                           "errors=1ms", "p99=-1ms", "p99=nanms", "=20ms"}) {
    EXPECT_THAT(Objective::Parse(text), IsStatus(absl::StatusCode::kInvalidArgument, "expected"))
        << text;
  }
}

std::vector<SweepStep> Sweep() {
  return {{10, ReportOf(std::vector<uint64_t>(10, 5))},
          {20, ReportOf(std::vector<uint64_t>(20, 6))},
          {40, ReportOf(std::vector<uint64_t>(25, 90))},
          {80, ReportOf(std::vector<uint64_t>(25, 5), 55)}};
}

TEST(Sweep, HasItsKneeWhereThroughputOverLatencyIsLargest) {
  auto steps = Sweep();
  steps.pop_back();
  EXPECT_EQ(KneeOf(steps), 1U);
}

TEST(Sweep, IsBestBeforeItFirstMissesAnObjective) {
  const auto best = [](const std::vector<std::string>& texts) -> double {
    std::vector<Objective> objectives;
    for (const std::string& text : texts) objectives.push_back(*Objective::Parse(text));
    const auto steps = Sweep();
    const SweepStep* step = BestOf(steps, objectives);
    return step == nullptr ? 0 : step->load;
  };
  EXPECT_EQ(best({}), 80);
  EXPECT_EQ(best({"p99=10ms"}), 20);
  EXPECT_EQ(best({"p99=100ms", "errors=1%"}), 40);
  EXPECT_EQ(best({"p99=5.5ms"}), 10);
  EXPECT_EQ(best({"p99=1ms"}), 0);
}

TEST(Sweep, SaysInATableAndInJsonWhatWasMeasured) {
  const std::vector<Objective> objectives = {*Objective::Parse("p99=10ms")};
  const std::string text = ToText(Sweep(), objectives);
  EXPECT_NE(text.find("objectives are met up to 20/s"), text.npos) << text;
  EXPECT_NE(text.find("misses an objective"), text.npos) << text;
  const auto told = JsonOf(Sweep(), objectives);
  EXPECT_EQ(told["best"], 20);
  EXPECT_EQ(told["steps"].size(), 4U);
  EXPECT_EQ(told["steps"][2]["load"], 40);
  EXPECT_EQ(told["steps"][2]["meets_objectives"], false);
  EXPECT_EQ(told["objectives"][0], "p99=10ms");
}

}  // namespace
}  // namespace linserve
