#include <httplib.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/http_client.h"
#include "support/paths.h"
#include "support/programs.h"
#include "support/wait_until.h"
#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Makes a repository of one model, "bytes".
class ServeTest : public ::testing::Test {
 protected:
  ServeTest() { InitModel(directory_.File("models/bytes")); }

  std::string repository() const { return directory_.File("models"); }

  TempDir directory_;
};

// libgomp says with what it is initialized. Were it initialized before the program starts once more
// with its variables, it would say so twice, and LibTorch would have been initialized twice, too.
TEST(Start, InitializesLibrariesOnceAndHasThreadsSpinBriefly) {
  const Outcome outcome = RunLinserve({"--version"}, {{"OMP_DISPLAY_ENV", "verbose"}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("GOMP_SPINCOUNT = '10000'"));
  const std::string begin = "OPENMP DISPLAY ENVIRONMENT BEGIN";
  EXPECT_EQ(outcome.err.find(begin), outcome.err.rfind(begin));
}

TEST_F(ServeTest, AModelFromInitIsInspectedServedAndAsked) {
  const Outcome inspected = RunLinserve({"inspect", "--model", repository() + "/bytes"});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("linformer.LinformerLM"));
  EXPECT_THAT(inspected.out, HasSubstr("fits the configuration"));

  RunningServer server(repository());
  const Outcome health = RunClient({"health", "--target", server.target()});
  EXPECT_EQ(health.code, 0) << health.err;
  EXPECT_EQ(health.out, "SERVING\n");
  const Outcome models = RunClient({"models", "--target", server.target(), "--json"});
  EXPECT_EQ(models.code, 0) << models.err;
  const auto listed = nlohmann::json::parse(models.out);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].at("name"), "bytes");
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(ServeTest, AnAddressOfHttpIsToldFromOneOfGrpc) {
  RunningServer server(repository());
  const Outcome outcome = RunClient({"models", "--target", server.http(), "--timeout", "5"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(server.http() + " is an address of HTTP"));
  EXPECT_THAT(RunClient({"models", "--target", "http://" + server.http()}).err,
              HasSubstr("expected HOST:PORT of gRPC, without http"));
}

TEST_F(ServeTest, ModelsAreComparedOnTheSameInput) {
  InitModel(directory_.File("models/same"));
  CopyGolden("linformer-lm-basic", directory_.File("models/other"));
  RunningServer server(repository());
  const std::string ids = directory_.File("in.jsonl");
  WriteAll(ids, "[9, 8, 7]\n[1, 2, 3, 4, 5]\n");
  const auto compare = [&](const std::string& models) {
    return RunClient({"compare", ids, "--target", server.target(), "--models", models});
  };
  const Outcome same = compare("bytes,same");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("2 sequences, against bytes"));
  EXPECT_THAT(same.out, HasSubstr("1.000000"));
  const Outcome other = compare("bytes,other");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("shapes differ"));
}

TEST_F(ServeTest, AComparisonTellsWhatOneOfTheModelsRefused) {
  const Outcome made = RunLinserve(
      {"init", "--architecture", "linformer.LinformerLM", "--output",
       directory_.File("models/narrow"), "--params",
       R"({"num_tokens": 16, "dim": 16, "seq_len": 64, "depth": 1, "k": 8, "heads": 2})"});
  ASSERT_EQ(made.code, 0) << made.err;
  RunningServer server(repository());
  const std::string ids = directory_.File("in.jsonl");
  WriteAll(ids, "[200]\n[1, 2, 3]\n");
  const Outcome outcome = RunClient({"compare", ids, "--target", server.target(), "--models",
                                     "bytes,narrow", "--output-name", "embedding"});
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(", by narrow: INVALID_ARGUMENT"));
}

TEST_F(ServeTest, LogsAreJsonLinesWithoutTheContentOfInputs) {
  RunningServer server(repository(), {"--log-level", "debug"});
  const Outcome outcome = RunClient({"embed", "--target", server.target(), "--token-offset", "0"},
                                    "confidential\n\xff\xff\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(server.Stop(), 0);
  const std::string log = server.log();
  EXPECT_THAT(server.process().out(), HasSubstr("request finished"));
  EXPECT_THAT(log, HasSubstr(R"("caller":"127.0.0.1","model":"bytes","method":"Embed",)"
                             R"("sequences":2,"tokens":14,"code":"OK","queue_seconds":)"));
  EXPECT_THAT(log, Not(HasSubstr("confidential")));
  EXPECT_THAT(log, Not(HasSubstr("99,111,110")));
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(event.is_object()) << line;
    EXPECT_TRUE(event.contains("time") && event.contains("message")) << line;
    EXPECT_THAT(event.value("severity", ""), testing::AnyOf("DEBUG", "INFO")) << line;
    if (event["message"] != "request finished") continue;
    const double waited = event.value("queue_seconds", -1.0);
    const double computed = event.value("compute_seconds", -1.0);
    EXPECT_TRUE(waited >= 0 && computed > 0) << line;
    EXPECT_LE(std::max(waited, computed), event.value("seconds", 0.0)) << line;
  }
  EXPECT_EQ(server.process().err(), "");
}

TEST_F(ServeTest, TheLogSaysWhyARequestOrASequenceOfItFailed) {
  RunningServer server(repository());
  EmbeddingClient client(server.client_options());
  EmbedCall call{.model = "bytes", .options = {}};
  for (const std::vector<int64_t>& ids : {std::vector<int64_t>{300}, {1, 2, 3}}) {
    const auto length = static_cast<int64_t>(ids.size());
    call.sequences.push_back({.id = "", .inputs = {{"x", Tensor::FromInts({length}, ids)}}});
  }
  EXPECT_TRUE(client.Embed(call).ok());
  call.model = "another";
  EXPECT_FALSE(client.Embed(call).ok());
  EXPECT_EQ(server.Stop(), 0);
  EXPECT_THAT(server.log(), HasSubstr(R"("tokens":3,"code":"OK","faults":1,"error":")"));
  EXPECT_THAT(server.log(), HasSubstr(R"("code":"NOT_FOUND","error":)"));
}

TEST_F(ServeTest, TracesRequestsSequencesAndBatches) {
  const std::string trace = directory_.File("trace.json");
  RunningServer server(repository(), {"--trace", trace});
  const Outcome outcome =
      RunClient({"embed", "--target", server.target(), "--token-offset", "0"}, "one\nlonger\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(server.Stop(), 0);
  std::map<std::string, int> spans;  // number of spans by name
  std::set<std::string> requests;
  std::set<std::string> batched;
  for (const auto& event : nlohmann::json::parse(ReadAll(trace))) {
    const std::string phase = event.value("ph", "");
    if (phase != "X" && phase != "b") continue;
    ++spans[event["name"]];
    const auto& arguments = event["args"];
    if (arguments.contains("request_id")) requests.insert(arguments["request_id"]);
    if (arguments.contains("requests")) batched.insert(arguments["requests"]);
  }
  EXPECT_EQ(spans["Embed"], 1);
  EXPECT_EQ(spans["sequence"], 2);
  EXPECT_EQ(spans["stream"], 2);
  EXPECT_GE(spans["batch"], 1);
  EXPECT_EQ(spans["forward"], spans["batch"]);
  EXPECT_EQ(requests.size(), 1U);
  EXPECT_EQ(batched, requests);
}

TEST_F(ServeTest, TracesRestRequestsWithTheirTraceId) {
  const std::string path = directory_.File("trace.json");
  RunningServer server(repository(), {"--trace", path});
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  httplib::Client client = LocalHttpClient(server.http_port());
  const httplib::Headers headers = {{"traceparent", "00-" + id + "-00f067aa0ba902b7-01"}};
  for (const char* body : {R"({"inputs": [7, 8]})", "{"}) {
    EXPECT_TRUE(client.Post("/embed", headers, body, "application/json")) << body;
  }
  EXPECT_EQ(server.Stop(), 0);
  std::multiset<std::string> of_trace;
  std::set<std::string> codes;
  for (const auto& event : nlohmann::json::parse(ReadAll(path))) {
    if (event.value("ph", "") != "b" || event["args"].value("trace_id", "") != id) continue;
    of_trace.insert(event["name"]);
    codes.insert(event["args"].value("code", ""));
  }
  EXPECT_EQ(of_trace, (std::multiset<std::string>{"/embed", "/embed", "sequence", "stream"}));
  EXPECT_EQ(codes, (std::set<std::string>{"", "OK", "INVALID_ARGUMENT"}));
}

TEST_F(ServeTest, AClientThatIsKilledLeavesTheServerAnswering) {
  RunningServer server(repository());
  {
    Process load({ClientProgram(), "load", "--target", server.target(), "--concurrency", "64",
                  "--duration", "600", "--warmup", "0"});
    EXPECT_TRUE(WaitUntil([&] {
      return server.Scrape()["linserve_requests_total{code=\"OK\",model=\"bytes\",rpc=\"Embed\"}"] >
             100;
    }));
    load.Signal(SIGKILL);
    EXPECT_EQ(load.Wait(), 128 + SIGKILL);
  }
  EXPECT_TRUE(server.WaitFor("linserve_in_flight_requests{rpc=\"Embed\"}", 0));
  EXPECT_TRUE(server.WaitFor("linserve_queue_sequences{model=\"bytes\",version=\"1\"}", 0));
  EXPECT_EQ(RunClient({"embed", "--target", server.target()}, "still there\n").code, 0);
  EXPECT_EQ(server.Stop(), 0);
}

class PagesTest : public ServedModelTest {};

TEST_F(PagesTest, TellOfLifeReadinessAndFigures) {
  EXPECT_THAT(shared().Get("/metrics"), HasSubstr("linserve_build_info"));
  shared().Get("/livez");
  shared().Get("/readyz");
  EXPECT_THAT(shared().Get("/"), HasSubstr("bytes"));
  shared().Get("/nothing", 404);
}

}  // namespace
}  // namespace linserve
