#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/programs.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string State(const std::string& model, const std::string& version, const std::string& state) {
  return "linserve_model_state{model=\"" + model + "\",state=\"" + state + "\",version=\"" +
         version + "\"}";
}

// Makes a repository of one model, "bytes", in version 1.
class ReloadTest : public ::testing::Test {
 protected:
  ReloadTest() { InitModel(repository() + "/bytes/1"); }

  std::string repository() const { return directory_.File("models"); }

  std::string Weights() const { return repository() + "/bytes/1/model.safetensors"; }
  static std::string Loads(const std::string& result) {
    return R"(linserve_model_loads_total{model="bytes",result=")" + result + R"(",version="1"})";
  }

  static int Embed(const RunningServer& server, const std::string& model) {
    return RunClient({"embed", "--target", server.target(), "--model", model}, "abc\n").code;
  }

  TempDir directory_;
};

TEST_F(ReloadTest, OnHangupNewModelsAreServedAndMissingOnesAreNot) {
  RunningServer server(repository(), {"--version-policy", "latest"});
  InitModel(repository() + "/bytes/2");
  InitModel(repository() + "/more");
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.WaitFor(State("bytes", "2", "READY"), 1));
  EXPECT_TRUE(server.WaitFor(State("bytes", "1", "READY"), 0));
  EXPECT_TRUE(server.WaitFor(State("more", "1", "READY"), 1));
  EXPECT_EQ(Embed(server, "more"), 0);
  fs::remove_all(repository() + "/more");
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] {
    return !server.Scrape().samples.contains(State("more", "1", "READY"));
  })) << "nobody misses it";
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(Embed(server, "more"), 1);
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(ReloadTest, AConfigurationThatDoesNotComeKeepsNobodyFromEnding) {
  const std::string config = directory_.File("config.json");
  WriteAll(config, "{}");
  RunningServer server(repository(), {"--config", config});
  fs::remove(config);
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil(
      [&] { return server.log().find("reloading the configuration") != std::string::npos; }));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(server.Stop(), 0);
  EXPECT_THAT(server.log(), HasSubstr("a reload hangs"));
}

TEST_F(ReloadTest, ABrokenCheckpointLeavesTheOldOneServed) {
  RunningServer server(repository(), {"--repository-poll-seconds", "0.01"});
  const std::string weights = repository() + "/bytes/1/model.safetensors";
  WriteAll(weights + ".new", "not weights");
  fs::rename(weights + ".new", weights);
  EXPECT_TRUE(server.WaitFor(Loads("failed"), 1));
  EXPECT_THAT(server.Get("/"), HasSubstr("the files changed, but cannot be loaded"));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  fs::remove_all(repository() + "/bytes/1");
  InitModel(repository() + "/bytes/1");
  // Once, or more often: it is looked at while it is written.
  EXPECT_TRUE(WaitUntil([&] { return server.Scrape()[Loads("ok")] > 1; }));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(ReloadTest, AServedFileThatIsTruncatedInPlaceHarmsNobody) {
  RunningServer server(repository());
  fs::resize_file(Weights(), 0);
  EXPECT_EQ(Embed(server, "bytes"), 0);
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.WaitFor(Loads("failed"), 1));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(ReloadTest, AFileThatIsTruncatedWhileItIsLoadedHarmsNobody) {
  const std::string whole = ReadAll(Weights());
  RunningServer server(repository(), {"--repository-poll-seconds", "0.001"});
  for (size_t round = 0; round < 200; ++round) {
    WriteAll(Weights(), whole);
    fs::resize_file(Weights(), whole.size() * round / 200);
  }
  EXPECT_TRUE(WaitUntil([&] { return server.Scrape()[Loads("failed")] > 0; }));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  const double loaded = server.Scrape()[Loads("ok")];
  WriteAll(Weights() + ".new", whole);
  fs::rename(Weights() + ".new", Weights());
  EXPECT_TRUE(WaitUntil([&] { return server.Scrape()[Loads("ok")] > loaded; }));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(ReloadTest, AVersionThatDoesNotFitLeavesTheOldOneServed) {
  const auto size = fs::file_size(Weights());
  RunningServer server(repository(), {"--max-model-bytes", std::to_string(size * 3 / 2)});
  const std::string whole = ReadAll(Weights());
  WriteAll(Weights() + ".new", whole);
  fs::rename(Weights() + ".new", Weights());
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.WaitFor(Loads("failed"), 1));
  EXPECT_THAT(server.Get("/"), HasSubstr("for its weights, but"));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(ReloadTest, TheMemoryPlanIsLoggedAndExported) {
  RunningServer server(repository(), {"--max-session-bytes", "12345678"});
  EXPECT_THAT(server.log(), HasSubstr("\"message\":\"memory plan\""));
  const Scraped scraped = server.Scrape();
  double planned = 0;
  for (const char* part : {"program", "weights", "inflight", "sessions", "cache", "scratch"}) {
    planned += scraped["linserve_memory_plan_bytes{part=\"" + std::string(part) + "\"}"];
  }
  EXPECT_EQ(planned, scraped["linserve_memory_limit_bytes"]);
  EXPECT_EQ(scraped["linserve_memory_plan_bytes{part=\"sessions\"}"], 12345678);
  EXPECT_EQ(scraped["linserve_memory_plan_bytes{part=\"inflight\"}"],
            scraped["linserve_max_inflight_bytes"]);
}

TEST_F(ReloadTest, ABadPolicyEndsTheStartWithAnExplanation) {
  const Outcome outcome =
      RunLinserve({"serve", "--model-repository", repository(), "--version-policy", "newest"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("'newest' is none of all, latest, latest(N)"));
}

}  // namespace
}  // namespace linserve
