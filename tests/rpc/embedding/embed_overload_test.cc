#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>

#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

constexpr const char* kQueued = "linserve_queue_sequences";

// Runs a server of version 2 of "tokens" that computes one sequence at a time and is held up: the
// first one is with the worker, all others wait.
class BusyServer : public TestServer {
 public:
  explicit BusyServer(QueueLimits limits = {})
      : TestServer({.policy = {.max_sequences = 1}, .limits = limits}), client_(client_options()) {
    tokens().Hold();
    Send(first_);
    EXPECT_TRUE(tokens().WaitForStarted(1));
  }

  // Sends a sequence that waits in the queue.
  std::shared_ptr<PendingCall> SendQueued(Ended& ended) {
    const double before = Scrape()[OfTokens(kQueued)];
    auto call = Send(ended);
    EXPECT_TRUE(WaitFor(OfTokens(kQueued), before + 1));
    return call;
  }

  std::shared_ptr<PendingCall> Send(Ended& ended) {
    return client_.EmbedAsync(CallOf("tokens", {Tokens("a", {1})}), ended.callback());
  }

  // Waits until the queue, which holds one sequence at most, has dropped the one in it. A request
  // that is too large makes the queue look for room.
  void WaitForDeparture() {
    const EmbedCall large = CallOf("tokens", {Tokens("a", {1}), Tokens("b", {1})});
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (Scrape()[Abandoned("queue")] == 0 && std::chrono::steady_clock::now() < limit) {
      EXPECT_EQ(client_.Embed(large).status().code(), StatusCode::kResourceExhausted);
    }
    EXPECT_EQ(Scrape()[Abandoned("queue")], 1);
    EXPECT_EQ(Scrape()[OfTokens(kQueued)], 0);
  }

  Ended& first() { return first_; }

 private:
  EmbeddingClient client_;
  Ended first_;
};

TEST(Overload, AFullQueueRefusesWithTheTimeToComeBack) {
  BusyServer server({.max_sequences = 1});
  Ended queued;
  server.SendQueued(queued);

  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  grpc::ClientContext context;
  v1::EmbedResponse response;
  const auto stub = server.NewStub();
  auto reader = stub->Embed(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("max_queue_sequences = 1"));
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto delay = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(delay, trailers.end());
  EXPECT_GE(std::stoi(std::string(delay->second.data(), delay->second.size())), 1);
  EXPECT_EQ(
      server.Scrape()[R"(linserve_rejected_total{model="tokens",reason="queue",version="2"})"], 1);

  server.tokens().LetGo();
  EXPECT_TRUE(server.first().status().ok());
  EXPECT_TRUE(queued.status().ok());
  EXPECT_TRUE(Serves(server));
}

TEST(Overload, ThoseOfHigherPriorityAreComputedFirst) {
  for (const bool oip : {false, true}) {
    TestServer server({.policy = {.max_sequences = 1}});
    server.tokens().Hold();
    ClientOptions options = server.client_options();
    if (oip) options.protocol = Protocol::kOip;
    EmbeddingClient client(options);
    std::deque<Ended> answers(4);
    const std::vector<Priority> priorities = {Priority::kNormal, Priority::kLow, Priority::kNormal,
                                              Priority::kHigh};
    for (size_t i = 0; i < answers.size(); ++i) {
      EmbedCall call = CallOf("tokens", {Tokens("a", {1})});
      call.priority = priorities[i];
      client.EmbedAsync(call, answers[i].callback());
      if (i == 0) {
        ASSERT_TRUE(server.tokens().WaitForStarted(1));
      }
      ASSERT_TRUE(server.WaitFor(OfTokens("linserve_queue_sequences"), static_cast<double>(i)));
    }
    server.tokens().Allow(2);
    EXPECT_TRUE(answers[0].status().ok());
    EXPECT_TRUE(answers[3].status().ok());
    server.tokens().Allow(1);
    EXPECT_TRUE(answers[2].status().ok());
    server.tokens().LetGo();
    EXPECT_TRUE(answers[1].status().ok());
  }
}

TEST(Overload, ARequestIsAdmittedAsAWholeOrNotAtAll) {
  BusyServer server({.max_sequences = 2});
  EmbeddingClient client(server.client_options());
  const NamedSequence one = Tokens("a", {1});
  EXPECT_THAT(client.Embed(CallOf("tokens", {one, one, one})),
              IsStatus(StatusCode::kResourceExhausted, "0 waiting and 3 asked for"));
  EXPECT_EQ(server.Scrape()[OfTokens(kQueued)], 0);
}

TEST(Overload, AMessageOverTheLimitIsRefused) {
  TestServer server({.grpc = {.limits = {.max_message_bytes = 65536}}});
  EmbeddingClient client(server.client_options());
  const auto results =
      client.Embed(CallOf("floats", {Floats("a", std::vector<float>(30000, 1.0F))}));
  EXPECT_THAT(results, IsStatus(StatusCode::kResourceExhausted, "larger than max"));
  EXPECT_TRUE(Serves(server));
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
}

TEST(Overload, WhatIsQueuedPastItsDeadlineIsNeverComputed) {
  BusyServer server({.max_sequences = 1});
  ClientOptions options = server.client_options();
  options.timeout = std::chrono::milliseconds(50);
  EmbeddingClient hasty(options);
  // The client gives up, or is told by the server.
  const auto late = hasty.Embed(CallOf("tokens", {Tokens("late", {1})}));
  EXPECT_EQ((late.ok() ? late->at(0).status : late.status()).code(), StatusCode::kDeadlineExceeded);
  server.WaitForDeparture();
  server.tokens().LetGo();
  EXPECT_TRUE(server.first().status().ok());
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  EXPECT_EQ(server.tokens().computed(), 1);
  EXPECT_TRUE(server.WaitFor(
      R"(linserve_requests_total{code="DEADLINE_EXCEEDED",model="tokens",rpc="Embed"})", 1));
  EXPECT_TRUE(Serves(server));
}

TEST(Overload, ACallerWhoLeavesTheQueueMakesRoomAtOnce) {
  BusyServer server({.max_sequences = 1});
  Ended queued;
  const auto call = server.SendQueued(queued);
  call->Cancel();
  EXPECT_EQ(queued.status().code(), StatusCode::kCancelled);
  server.WaitForDeparture();
  EXPECT_TRUE(server.WaitFor(InFlight(), 1));
  server.tokens().LetGo();
  EXPECT_TRUE(server.first().status().ok());
  EXPECT_EQ(server.tokens().computed(), 1);
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  EXPECT_TRUE(Serves(server));
}

TEST(Overload, ABatchThatNobodyWaitsForIsNotComputedToItsEnd) {
  TestServer server;
  server.tokens().ComputeWithoutEnd();
  EmbeddingClient client(server.client_options());
  Ended ended;
  const auto call =
      client.EmbedAsync(CallOf("tokens", {Tokens("a", {1}), Tokens("b", {2})}), ended.callback());
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  call->Cancel();
  EXPECT_EQ(ended.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(server.WaitFor(Abandoned("batch"), 2));
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  EXPECT_EQ(server.tokens().computed(), 0);
  server.tokens().LetGo();
  EXPECT_TRUE(Serves(server));
}

// Makes a request of sequences, each with results of 320 kB.
v1::EmbedRequest LargeRequest(int sequences) {
  v1::EmbedRequest request;
  request.set_model("tokens");
  for (int i = 0; i < sequences; ++i) {
    auto& ids = *request.add_sequences()->mutable_token_ids();
    ids.Resize(static_cast<int>(kTestLongest), 1);
  }
  return request;
}

TEST(Overload, ASlowReaderHoldsUpNobodyElse) {
  TestServer server;
  const auto stub = server.NewStub();
  grpc::ClientContext context;
  auto slow = stub->Embed(&context, LargeRequest(50));
  v1::EmbedResponse response;
  ASSERT_TRUE(slow->Read(&response));
  // Everything is computed, though next to nothing was read.
  EXPECT_TRUE(Serves(server));
  EXPECT_EQ(server.tokens().computed(), 51);
  EXPECT_TRUE(server.WaitFor(InFlight(), 1));
  int results = response.last() ? 1 : 0;
  while (slow->Read(&response)) results += response.last() ? 1 : 0;
  EXPECT_EQ(results, 50);
  EXPECT_TRUE(slow->Finish().ok());
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
}

TEST(Overload, ResultsThatWaitForACallerWhoLeavesAreDroppedAndCounted) {
  TestServer server;
  const auto stub = server.NewStub();
  grpc::ClientContext context;
  auto slow = stub->Embed(&context, LargeRequest(50));
  v1::EmbedResponse response;
  ASSERT_TRUE(slow->Read(&response));
  EXPECT_TRUE(Serves(server));  // thus all results are made
  context.TryCancel();
  while (slow->Read(&response)) {
  }
  EXPECT_EQ(slow->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  EXPECT_GT(server.Scrape()[Abandoned("stream")], 10);
  EXPECT_TRUE(
      server.WaitFor(R"(linserve_requests_total{code="CANCELLED",model="tokens",rpc="Embed"})", 1));
  EXPECT_TRUE(Serves(server));
}

TEST(Overload, AFailedForwardPassIsTheAnswerOfItsSequencesOnly) {
  TestServer server;
  server.tokens().FailNext(absl::InternalError("the device is on fire"));
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf("tokens", {Tokens("a", {1})}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->at(0).status, IsStatus(StatusCode::kInternal, "the device is on fire"));
  EXPECT_TRUE(Serves(server));
}

}  // namespace
}  // namespace linserve
