#include <filesystem>
#include <nlohmann/json.hpp>

#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class LoadCommandTest : public ServedModelTest {};

TEST_F(LoadCommandTest, InAClosedAndInAnOpenLoopMeetsNoErrors) {
  for (const Arguments& loop : {Arguments{"--concurrency", "4"}, Arguments{"--rate", "100"}}) {
    Arguments arguments = {"load", "--target",  shared().target(), "--duration", "1", "--warmup",
                           "0.1",  "--lengths", "uniform:1,64",    "--json",     "-"};
    arguments.insert(arguments.end(), loop.begin(), loop.end());
    const Outcome outcome = RunClient(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto report = nlohmann::json::parse(outcome.out);
    EXPECT_GT(report.at("ok_requests"), 10);
    EXPECT_EQ(report.at("ok_requests"), report.at("requests"));
    EXPECT_TRUE(report.at("request_errors").empty()) << report;
    EXPECT_TRUE(report.at("sequence_errors").empty()) << report;
    uint64_t answered = 0;
    for (const auto& interval : report.at("over_time")) {
      answered += interval.at("answered").get<uint64_t>();
    }
    EXPECT_EQ(answered, report.at("within").at("requests"));
    EXPECT_EQ(report.at("latency_percentiles").back()[0], 1);
  }
}

TEST_F(LoadCommandTest, NamesTheServerAndTheShareOfItsCache) {
  const TempDir directory;
  InitModel(directory.File("models/m"));
  RunningServer server(directory.File("models"), {"--cache-bytes", "64MiB", "--threads", "1"});
  const auto load = [&](const Arguments& more) {
    Arguments arguments = {"load",     "--target", server.target(), "--requests", "200",
                           "--warmup", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunClient(arguments);
  };
  ASSERT_EQ(load({}).code, 0);
  const Outcome again = load({});
  EXPECT_THAT(again.out, HasSubstr("server: linserve "));
  EXPECT_THAT(again.out,
              HasSubstr("linformer.LinformerLM, in f32, replicas: 1, threads of each at most: 1"));
  EXPECT_THAT(again.out, HasSubstr("the server's cache had "));
  EXPECT_THAT(again.out, HasSubstr("warning: results came from the server's cache"));
  const auto report = nlohmann::json::parse(load({"--json", "-"}).out);
  EXPECT_GT(report.at("server_cached_share"), 0.5);
  EXPECT_EQ(report.at("server").at("threads"), 1);
  EXPECT_EQ(report.at("server").at("dtype"), "F32");
  EXPECT_NE(report.at("server").at("version"), "");
  const auto oip = nlohmann::json::parse(load({"--protocol", "oip", "--json", "-"}).out);
  EXPECT_TRUE(oip.at("server_cached_share").is_null());
}

TEST_F(LoadCommandTest, OnTwoProtocolsInTurnsIsComparedOnAPageOfItsOwn) {
  const TempDir directory;
  Arguments arguments = {"load",
                         "--target",
                         shared().target(),
                         "--concurrency",
                         "1,2",
                         "--duration",
                         "0.3",
                         "--warmup",
                         "0.1",
                         "--against",
                         "oip",
                         "--html",
                         directory.File("report.html"),
                         "--percentiles",
                         directory.File("percentiles.txt")};
  const Outcome outcome = RunClient(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("over " + shared().target()));
  EXPECT_THAT(outcome.out, HasSubstr(shared().target() + " (oip)"));
  const std::string page = ReadAll(directory.File("report.html"));
  constexpr std::string_view kBegin = R"(<script type="application/json" id="report">)";
  const size_t begin = page.find(kBegin) + kBegin.size();
  const auto report =
      nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  ASSERT_EQ(report.at("subjects").size(), 2U);
  for (const auto& subject : report.at("subjects")) {
    ASSERT_EQ(subject.at("steps").size(), 2U);
    for (const auto& step : subject.at("steps")) EXPECT_GT(step.at("ok_requests"), 0) << step;
  }
  for (const char* file : {"percentiles-1-1.txt", "percentiles-1-2.txt", "percentiles-2-1.txt",
                           "percentiles-2-2.txt"}) {
    EXPECT_THAT(ReadAll(directory.File(file)), HasSubstr("1/(1-Percentile)")) << file;
  }
  EXPECT_FALSE(std::filesystem::exists(directory.File("percentiles.txt")));
}

TEST_F(LoadCommandTest, MeasuresWhatTheClientItselfCanDo) {
  for (const char* protocol : {"linserve", "oip"}) {
    const Outcome outcome =
        RunClient({"load", "--target", shared().target(), "--protocol", protocol, "--ceiling",
                   "--concurrency", "1", "--duration", "0.5", "--warmup", "0.1", "--json", "-"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto report = nlohmann::json::parse(outcome.out);
    EXPECT_GT(report.at("client_ceiling_requests_per_second"), report.at("requests_per_second"))
        << report;
  }
}

TEST_F(LoadCommandTest, RefusesToCompareWithWhatIsNoServer) {
  const auto refused = [&](const char* subject) {
    const Outcome outcome =
        RunClient({"load", "--target", shared().target(), "--against", subject});
    EXPECT_EQ(outcome.code, 2) << subject;
    return outcome.err;
  };
  EXPECT_THAT(refused("http@127.0.0.1:1"), HasSubstr("'http' is no protocol, expected linserve"));
  EXPECT_THAT(refused("http"), HasSubstr("'http' is no protocol, expected linserve"));
  EXPECT_THAT(refused("oip@127.0.0.1"), HasSubstr("the port is missing"));
}

TEST_F(LoadCommandTest, FailsWhereMostRequestsDo) {
  const Outcome outcome = RunClient({"load", "--target", shared().target(), "--deadline-ms", "1",
                                     "--requests", "200", "--sequences", "500", "--warmup", "0"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(" requests failed\n"));
}

TEST_F(LoadCommandTest, ReplaysATrace) {
  const TempDir directory;
  WriteAll(directory.File("trace.txt"), "0 5\n0.01 64\n0.05 5\n0.1 1\n");
  const Outcome outcome = RunClient({"load", "--target", shared().target(), "--trace",
                                     directory.File("trace.txt"), "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report.at("ok_requests"), 4);
  EXPECT_EQ(report.at("tokens"), 75);
}

TEST_F(LoadCommandTest, SaysWhatIsWrongWithItsArgumentsBeforeItAsksAServer) {
  const std::vector<std::pair<Arguments, const char*>> wrong = {
      {{"--trace", "/nowhere"}, "File does not exist"},
      {{"--trace", "/tmp"}, "File is actually a directory"},
      {{"--slo", "p99=20"}, "expected mean, p50"},
      {{"--lengths", "normal:3"}, "expected fixed:LENGTH"},
      {{"--seed", "-1"}, "-1 not in range"},
      {{"--duration", "nan"}, "expected a number"},
      {{"--against", "oip@"}, "names no target"},
      {{"--html", "-"}, "expected a file"},
      {{"--percentiles", "-"}, "expected a file"}};
  for (const auto& [arguments, expected] : wrong) {
    Arguments all = {"load", "--target", "127.0.0.1:1"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunClient(all);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected));
  }
}

}  // namespace
}  // namespace linserve
