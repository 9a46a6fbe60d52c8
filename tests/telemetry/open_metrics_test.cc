#include "telemetry/open_metrics.h"

#include <gmock/gmock.h>

#include <string>

#include "telemetry/metrics.h"

namespace linserve {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using testing::HasSubstr;
using testing::Not;

std::string Text(const MetricFamily& family) { return ToOpenMetrics({family}, {}); }

TEST(OpenMetrics, NamesCountersWithoutTheirEnding) {
  ClientMetric metric;
  metric.label = {{"rpc", "Embed"}};
  metric.counter.value = 3;
  EXPECT_EQ(Text({"requests_total", "Requests.", MetricType::Counter, {metric}}),
            "# TYPE requests counter\n"
            "# HELP requests Requests.\n"
            "requests_total{rpc=\"Embed\"} 3.0\n"
            "# EOF\n");
}

TEST(OpenMetrics, KeepsTheNameOfACounterWithoutThatEnding) {
  ClientMetric metric;
  metric.counter.value = 3;
  EXPECT_EQ(Text({"nv_inference_count", "Sequences.", MetricType::Counter, {metric}}),
            "# TYPE nv_inference_count unknown\n"
            "# HELP nv_inference_count Sequences.\n"
            "nv_inference_count 3.0\n"
            "# EOF\n");
}

TEST(OpenMetrics, WritesEachNumberInOneWay) {
  for (const auto& [value, text] : std::initializer_list<std::pair<double, std::string>>{
           {0, "0.0"},
           {-1.5, "-1.5"},
           {100000, "100000.0"},
           {1e6, "1e+06"},
           {0.0001, "0.0001"},
           {0.00001, "1e-05"},
           {1732600000.25, "1.73260000025e+09"},
           {std::numeric_limits<double>::infinity(), "+Inf"},
           {-std::numeric_limits<double>::infinity(), "-Inf"},
           {std::numeric_limits<double>::quiet_NaN(), "NaN"}}) {
    ClientMetric metric;
    metric.gauge.value = value;
    EXPECT_THAT(Text({"g", "", MetricType::Gauge, {metric}}), HasSubstr("\ng " + text + "\n"));
  }
}

TEST(OpenMetrics, EscapesWhatWouldEndALabelOrALine) {
  ClientMetric metric;
  metric.label = {{"caller", "a\"b\\c\nd"}};
  const std::string text = Text({"g", "a\nb", MetricType::Gauge, {metric}});
  EXPECT_THAT(text, HasSubstr("caller=\"a\\\"b\\\\c\\nd\""));
  EXPECT_THAT(text, HasSubstr("# HELP g a\\nb\n"));
}

TEST(OpenMetrics, HasTheBucketsOfAHistogramWithTheirBoundsLast) {
  ClientMetric metric;
  metric.label = {{"rpc", "Embed"}};
  metric.histogram = {2, 1.25, {{1, 0.5}, {2, std::numeric_limits<double>::infinity()}}};
  EXPECT_THAT(Text({"h", "", MetricType::Histogram, {metric}}),
              HasSubstr("h_bucket{rpc=\"Embed\",le=\"0.5\"} 1\n"
                        "h_bucket{rpc=\"Embed\",le=\"+Inf\"} 2\n"
                        "h_count{rpc=\"Embed\"} 2\n"
                        "h_sum{rpc=\"Embed\"} 1.25\n"));
}

TEST(OpenMetrics, NamesTheLastTracedRequestOfEachBucket) {
  Metrics metrics({});
  RpcMetrics& rpc = metrics.ForRpc("Embed");
  rpc.Finished(0, std::chrono::milliseconds(400), "m", "aaa");
  rpc.Finished(0, std::chrono::milliseconds(450), "m", "bbb");
  rpc.Finished(0, std::chrono::milliseconds(500), "m");
  rpc.Finished(0, std::chrono::seconds(100), "m", "ccc");
  rpc.Finished(13, std::chrono::milliseconds(450), "m", "ddd");
  const std::string text = metrics.Scrape(MetricsFormat::kOpenMetrics);
  const std::string bucket =
      R"(linserve_request_duration_seconds_bucket{model="m",rpc="Embed",le=)";
  EXPECT_THAT(text, HasSubstr(bucket + R"("0.35"} 0)" + "\n"));
  EXPECT_THAT(text, HasSubstr(bucket + R"("0.5"} 3 # {trace_id="bbb"} 0.45 1.)"));
  EXPECT_THAT(text, HasSubstr(bucket + R"("+Inf"} 4 # {trace_id="ccc"} 100.0 1.)"));
  EXPECT_THAT(text, Not(HasSubstr("ddd")));
  EXPECT_THAT(metrics.Scrape(), Not(HasSubstr("trace_id"))) << "the text format has none";
}

}  // namespace
}  // namespace linserve
