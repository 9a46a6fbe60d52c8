#include "telemetry/recent_metrics.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "telemetry/metrics.h"

namespace linserve {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class RecentMetricsTest : public testing::Test {
 protected:
  void Add(const std::string& metrics) {
    recent_.Add(RecentMetrics::Time(seconds(now_++)), metrics);
  }
  json Recent() const { return json::parse(recent_.ToJson()); }

  int64_t now_ = 1000;
  RecentMetrics recent_;
};

TEST_F(RecentMetricsTest, KeepWhatThePageDrawsAndNoOtherSeries) {
  Add("# HELP linserve_open_streams streams\nlinserve_open_streams{rpc=\"Embed\"} 2\n"
      "linserve_queue_bytes{model=\"m\"} 7\nlinserve_open_streams_of_others 1\n"
      "process_resident_memory_bytes 1.5e+06");
  Add("linserve_open_streams{rpc=\"Embed\"} 2.5\nprocess_resident_memory_bytes 1500000\n");
  EXPECT_EQ(Recent(), json({{"times", {1000, 1001}},
                            {"series",
                             {{"linserve_open_streams{rpc=\"Embed\"}", {2, 2.5}},
                              {"process_resident_memory_bytes", 1500000}}}}));
}

TEST_F(RecentMetricsTest, SayWhereASeriesWasNotThere) {
  Add("");
  Add("linserve_open_streams 3\n");
  Add("linserve_open_streams wrong\nlinserve_open_streams NaN\nlinserve_open_streams\n");
  EXPECT_EQ(Recent()["series"], json({{"linserve_open_streams", {nullptr, 3, nullptr}}}));
}

TEST_F(RecentMetricsTest, ForgetWhatIsOlderThanAnHour) {
  Add("linserve_queue_sequences{model=\"gone\"} 1\n");
  for (size_t i = 0; i < RecentMetrics::kSamples - 1; ++i) {
    Add("linserve_open_streams " + std::to_string(i) + "\n");
  }
  EXPECT_TRUE(Recent()["series"].contains("linserve_queue_sequences{model=\"gone\"}"));
  Add("linserve_open_streams -1\n");
  const json recent = Recent();
  EXPECT_EQ(recent["times"].size(), RecentMetrics::kSamples);
  EXPECT_EQ(recent["times"].front(), 1001);
  EXPECT_EQ(recent["series"].size(), 1U);
  EXPECT_EQ(recent["series"]["linserve_open_streams"].front(), 0);
  EXPECT_EQ(recent["series"]["linserve_open_streams"].back(), -1);
}

TEST_F(RecentMetricsTest, AreBoundedHoweverManySeriesThereAre) {
  std::string metrics;
  for (size_t i = 0; i < RecentMetrics::kMostSeries + 10; ++i) {
    metrics += "linserve_queue_sequences{model=\"" + std::to_string(i) + "\"} 1\n";
  }
  Add(metrics);
  EXPECT_EQ(Recent()["series"].size(), RecentMetrics::kMostSeries);
}

TEST_F(RecentMetricsTest, AreOfTheMetricsThatThereAre) {
  Metrics metrics({"1", "c", "t"});
  metrics.ForModel("m", 1).SetState(ModelState::kReady);
  metrics.ForRpc("Embed").Started();
  metrics.SetMaxInflightBytes(5);
  const json now =
      json::parse(RecentMetrics::ToJson(RecentMetrics::Time(seconds(5)), metrics.Scrape()));
  EXPECT_EQ(now["times"], json({5}));
  EXPECT_EQ(now["series"]["linserve_in_flight_requests{rpc=\"Embed\"}"], 1);
  EXPECT_GT(now["series"]["process_resident_memory_bytes"], 0);
  EXPECT_GT(now["series"]["linserve_memory_limit_bytes"], 0);
  for (const char* name : {"linserve_replicas", "linserve_sessions", "linserve_sequences_total"}) {
    EXPECT_TRUE(now["series"].contains(std::string(name) + R"({model="m",version="1"})")) << name;
  }
}

}  // namespace
}  // namespace linserve
