#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "linserve/v1/embedding.grpc.pb.h"
#include "support/paths.h"
#include "support/programs.h"
#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kFixtures = DataFile("generation/");

struct Generated {
  absl::StatusOr<GenerationEnd> end = absl::UnknownError("not asked");
  std::vector<int64_t> tokens;
};

class GenerateTest : public SharedServerTest {
 protected:
  Generated Generate(GenerateCall call) {
    Generated generated;
    EmbeddingClient client(shared().client_options());
    generated.end = client.Generate(call, [&](const GeneratedTokens& tokens) {
      generated.tokens.insert(generated.tokens.end(), tokens.ids.begin(), tokens.ids.end());
    });
    return generated;
  }

  static void SetUpTestSuite() { Serve(kFixtures); }
};

json Expected(const std::string& model) {
  std::ifstream file(kFixtures + model + "/expected.json");
  return json::parse(file);
}

// tests/data/generation/make.py wrote the tokens, by the Python package on the whole prefix each
// time.
TEST_F(GenerateTest, GreedyTokensAreThoseOfThePackageOnTheWholePrefix) {
  constexpr double kTie = 1e-4;
  for (const std::string model : {"local", "global", "rotary", "pair"}) {
    for (const json& test : Expected(model)) {
      GenerateCall call{.model = model, .token_ids = test["prompt"]};
      if (test.contains("x")) {
        const std::vector<int64_t> x = test["x"];
        call.inputs["x"] = Tensor::FromInts({std::ssize(x)}, x);
      }
      const Generated generated = Generate(call);
      ASSERT_TRUE(generated.end.ok()) << generated.end.status();
      EXPECT_EQ(generated.end->reason, "length");
      const std::vector<int64_t> expected = test["tokens"];
      ASSERT_EQ(generated.tokens.size(), expected.size());
      for (size_t i = 0; i < expected.size() && test["margins"][i] > kTie; ++i) {
        ASSERT_EQ(generated.tokens[i], expected[i]) << model << " token " << i;
      }
    }
  }
}

TEST_F(GenerateTest, RequestsThatRunAtOnceGetWhatEachGetsAlone) {
  std::vector<GenerateCall> calls;
  for (int64_t i = 0; i < 12; ++i) {
    calls.push_back({.model = "local",
                     .token_ids = {i, 2 * i + 1},
                     .max_tokens = 10 + i,
                     .temperature = 1,
                     .seed = static_cast<uint64_t>(i)});
  }
  std::vector<Generated> alone(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) alone[i] = Generate(calls[i]);
  std::vector<Generated> together(calls.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < calls.size(); ++i) {
      threads.emplace_back([&, i] { together[i] = Generate(calls[i]); });
    }
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_THAT(alone[i].tokens, SizeIs(10 + i));
    EXPECT_EQ(together[i].tokens, alone[i].tokens);
    EXPECT_EQ(together[i].end->reason, "max_tokens");
    EXPECT_EQ(together[i].end->prompt_tokens, 2);
  }
  EXPECT_TRUE(shared().WaitFor(R"(linserve_sessions{model="local",version="1"})", 0));
}

TEST_F(GenerateTest, EndsWithAStopToken) {
  const json test = Expected("local")[1];
  const std::vector<int64_t> expected = test["tokens"];
  const Generated generated =
      Generate({.model = "local", .token_ids = test["prompt"], .stop_tokens = {expected[5], 1000}});
  ASSERT_TRUE(generated.end.ok()) << generated.end.status();
  EXPECT_EQ(generated.end->reason, "stop");
  const auto stop = std::find(expected.begin(), expected.end(), expected[5]) + 1;
  EXPECT_THAT(generated.tokens, ElementsAreArray(expected.begin(), stop));
}

TEST_F(GenerateTest, FaultsSayWhatWasWrong) {
  EXPECT_THAT(Generate({.model = "local"}).end.status(), IsInvalid("there is no prompt"));
  EXPECT_THAT(Generate({.model = "local", .token_ids = {1, 9999}}).end.status(), IsInvalid("9999"));
  EXPECT_THAT(Generate({.model = "local", .text = "hello"}).end.status(), IsInvalid("tokenizer"));
  EXPECT_THAT(Generate({.model = "local", .token_ids = std::vector<int64_t>(1000, 1)}).end.status(),
              IsInvalid("1000"));
  GenerateCall call{.model = "local", .token_ids = {1}};
  call.temperature = -1;
  EXPECT_THAT(Generate(call).end.status(), IsInvalid("options.temperature"));
  call = {.model = "local", .token_ids = {1}};
  call.top_p = 2;
  EXPECT_THAT(Generate(call).end.status(), IsInvalid("options.top_p"));
  EXPECT_EQ(Generate({.model = "nobody", .token_ids = {1}}).end.status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(Generate({.model = "local", .token_ids = {1}, .max_tokens = 1}).end.ok());
}

TEST_F(GenerateTest, TheClientPrintsTheTokens) {
  const json test = Expected("local")[1];
  const std::vector<int64_t> expected = test["tokens"];
  const Outcome outcome =
      RunClient({"generate", "--target", shared().target(), test["prompt"].dump(), "--model",
                 "local", "--max-tokens", "4", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["token_ids"],
            json(std::vector<int64_t>(expected.begin(), expected.begin() + 4)));
  EXPECT_EQ(answer["finish_reason"], "max_tokens");
  const Outcome words =
      RunClient({"generate", "--target", shared().target(), "once", "--model", "local"});
  EXPECT_EQ(words.code, 1);
  EXPECT_THAT(words.err, HasSubstr("token ids"));
  // In 32 bits these would be 1.
  const std::string large = "4294967297";
  const Outcome prompt =
      RunClient({"generate", "--target", shared().target(), "[" + large + "]", "--model", "local"});
  EXPECT_EQ(prompt.code, 1);
  EXPECT_THAT(prompt.err, HasSubstr(large));
  EXPECT_EQ(RunClient({"generate", "[1]", "--stop", large}).code, 2);
}

TEST(GenerateForNobody, Stops) {
  TempDir directory;
  const std::string repository = directory.File("models");
  const Outcome made = RunLinserve(
      {"init", "--architecture", "linear_attention_transformer.LinearAttentionTransformerLM",
       "--seed", "1", "--output", repository + "/long", "--params",
       R"({"num_tokens": 64, "dim": 128, "heads": 4, "depth": 6, "max_seq_len": 65536,
           "causal": true})"});
  ASSERT_EQ(made.code, 0) << made.err;
  RunningServer server(repository);
  ClientOptions options = server.client_options();
  const auto generate = [&](int64_t max_tokens) {
    return EmbeddingClient(options)
        .Generate({.model = "long", .token_ids = {1}, .max_tokens = max_tokens}, [](const auto&) {})
        .status();
  };
  ASSERT_TRUE(generate(1).ok());
  options.timeout = std::chrono::seconds(2);  // a tenth of what it takes
  // Where the first step was very slow, the deadline cannot be met by the server's own estimate.
  EXPECT_THAT(generate(60'000).code(), ::testing::AnyOf(absl::StatusCode::kDeadlineExceeded,
                                                        absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(server.WaitFor(R"(linserve_sessions{model="long",version="1"})", 0));
  EXPECT_TRUE(server.WaitFor(R"(linserve_in_flight_requests{rpc="Generate"})", 0));
}

// Tokens that wait for a reader are sent together, and their messages count in what is in flight.
TEST(GenerateForASlowReader, CountsTheTokensThatWait) {
  constexpr int64_t kTokens = 12'000;
  TempDir directory;
  const std::string repository = directory.File("models");
  const Outcome made = RunLinserve(
      {"init", "--architecture", "linear_attention_transformer.LinearAttentionTransformerLM",
       "--output", repository + "/small", "--params",
       R"({"num_tokens": 64, "dim": 16, "heads": 2, "depth": 1, "max_seq_len": 16384,
           "causal": true})"});
  ASSERT_EQ(made.code, 0) << made.err;
  RunningServer server(repository);
  grpc::ChannelArguments arguments;  // with which the connection takes little unread
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 14);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::EmbeddingService::NewStub(
      grpc::CreateCustomChannel(server.target(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  v1::GenerateRequest request;
  request.set_model("small");
  request.set_request_id(std::string(128, 'i'));
  request.add_token_ids(1);
  request.mutable_options()->set_max_tokens(kTokens);
  const auto reader = stub->Generate(&context, request);
  ASSERT_TRUE(
      server.WaitFor(R"(linserve_generated_tokens_total{model="small",version="1"})", kTokens));
  EXPECT_GE(server.Scrape()["linserve_inflight_bytes"], 8 * (16 << 10));
  int64_t read = 0;
  for (v1::GenerateResponse response; reader->Read(&response);) read += response.token_ids_size();
  EXPECT_EQ(read, kTokens);
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(server.WaitFor("linserve_inflight_bytes", 0));
}

}  // namespace
}  // namespace linserve
