#include <signal.h>

#include <filesystem>

#include "support/programs.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string State(const std::string& model, const std::string& version, const std::string& state) {
  return "linserve_model_state{model=\"" + model + "\",state=\"" + state + "\",version=\"" +
         version + "\"}";
}

// A repository of one model, "bytes", in version 1.
class ReloadTest : public ::testing::Test {
 protected:
  ReloadTest() { InitModel(repository() + "/bytes/1"); }

  std::string repository() const { return directory_.File("models"); }

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
  EXPECT_TRUE(server.WaitFor(State("bytes", "1", "UNAVAILABLE"), 1));
  EXPECT_TRUE(server.WaitFor(State("more", "1", "READY"), 1));
  EXPECT_EQ(Embed(server, "more"), 0);
  fs::remove_all(repository() + "/more");
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.WaitFor(State("more", "1", "UNAVAILABLE"), 1));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(Embed(server, "more"), 1);
  EXPECT_EQ(server.Stop(), 0) << server.process().err();
}

TEST_F(ReloadTest, ABrokenCheckpointLeavesTheOldOneServed) {
  RunningServer server(repository(), {"--repository-poll-seconds", "0.01"});
  const std::string weights = repository() + "/bytes/1/model.safetensors";
  WriteAll(weights + ".new", "not weights");
  fs::rename(weights + ".new", weights);
  EXPECT_TRUE(server.WaitFor(
      R"(linserve_model_loads_total{model="bytes",result="failed",version="1"})", 1));
  EXPECT_THAT(server.Get("/"), HasSubstr("the files changed, but cannot be loaded"));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  fs::remove_all(repository() + "/bytes/1");
  InitModel(repository() + "/bytes/1");
  EXPECT_TRUE(
      server.WaitFor(R"(linserve_model_loads_total{model="bytes",result="ok",version="1"})", 2));
  EXPECT_EQ(Embed(server, "bytes"), 0);
  EXPECT_EQ(server.Stop(), 0) << server.process().err();
}

TEST_F(ReloadTest, ABadPolicyEndsTheStartWithAnExplanation) {
  const Outcome outcome =
      RunLinserve({"serve", "--model-repository", repository(), "--version-policy", "newest"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("'newest' is none of all, latest, latest(N)"));
}

}  // namespace
}  // namespace linserve
