#include <chrono>
#include <thread>

#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

constexpr const char* kDraining =
    R"(linserve_model_state{model="tokens",state="DRAINING",version="2"})";

TEST(Drain, WhatWasAcceptedIsAnsweredAndNothingMoreIsTaken) {
  TestServer server;
  server.tokens().Hold();
  EmbeddingClient client(server.client_options());
  Ended accepted;
  client.EmbedAsync(CallOf("tokens", {Tokens("a", {1})}), accepted.callback());
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  server.grpc().Drain();
  std::thread drain([&] { EXPECT_EQ(server.repository().Drain(TimePoint::max()), 0U); });
  EXPECT_TRUE(server.WaitFor(kDraining, 1));
  EXPECT_THAT(client.Embed(CallOf("tokens", {Tokens("b", {1})})),
              IsStatus(StatusCode::kUnavailable, "the server is draining; try another one"));
  EXPECT_EQ(*client.Health(), HealthState::kNotServing);
  EXPECT_EQ(client.GetModel("tokens")->state, "DRAINING");
  server.tokens().LetGo();
  drain.join();
  EXPECT_TRUE(accepted.status().ok()) << accepted.status();
  EXPECT_EQ(server.Scrape()[R"(linserve_rejected_total{model="tokens",reason="draining",)"
                            R"(version="2"})"],
            1);
  server.grpc().Shutdown(std::chrono::system_clock::now() + std::chrono::minutes(1));
}

TEST(Drain, WhatStillWaitsAtItsDeadlineIsUnavailable) {
  TestServer server({.policy = {.max_sequences = 1}});
  server.tokens().Hold();
  EmbeddingClient client(server.client_options());
  Ended ended;
  client.EmbedAsync(CallOf("tokens", {Tokens("a", {1}), Tokens("b", {2})}), ended.callback());
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  EXPECT_EQ(server.repository().Drain(std::chrono::steady_clock::now()), 1U);
  server.tokens().LetGo();
  ASSERT_TRUE(ended.status().ok()) << ended.status();
  EXPECT_TRUE(ended.results()[0].status.ok());
  EXPECT_THAT(ended.results()[1].status, IsStatus(StatusCode::kUnavailable, "draining"));
}

TEST(Drain, AStreamEndsOnceItIsIdle) {
  TestServer server;
  server.tokens().Hold();
  EmbeddingClient client(server.client_options());
  const auto idle = client.OpenStream();
  const auto busy = client.OpenStream();
  Ended answer;
  ASSERT_TRUE(busy->Send(CallOf("tokens", {Tokens("a", {1})}), answer.stream_callback()).ok());
  EXPECT_TRUE(server.WaitFor("linserve_open_streams{rpc=\"EmbedStream\"}", 2));
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  server.grpc().Drain();
  EXPECT_THAT(idle->Finish(), IsStatus(StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(server.Scrape()[InFlight("EmbedStream")], 1);
  server.tokens().LetGo();
  EXPECT_TRUE(answer.status().ok()) << answer.status();
  EXPECT_TRUE(server.WaitFor("linserve_open_streams{rpc=\"EmbedStream\"}", 0));
}

TEST(Drain, AStreamThatIsOpenedThenEndsAtOnce) {
  TestServer server;
  server.grpc().Drain();
  EmbeddingClient client(server.client_options());
  EXPECT_THAT(client.OpenStream()->Finish(),
              ::testing::AnyOf(IsStatus(StatusCode::kOk, ""),
                               IsStatus(StatusCode::kUnavailable, "draining")));
  EXPECT_TRUE(server.WaitFor("linserve_open_streams{rpc=\"EmbedStream\"}", 0));
}

TEST(Drain, ShutdownCancelsWhatIsLeftAtItsDeadline) {
  TestServer server;
  server.tokens().ComputeWithoutEnd();
  EmbeddingClient client(server.client_options());
  Ended call;
  Ended request;
  client.EmbedAsync(CallOf("tokens", {Tokens("a", {1})}), call.callback());
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("tokens", {Tokens("b", {1})}), request.stream_callback()).ok());
  EXPECT_TRUE(server.WaitFor(InFlight("EmbedStream"), 1));
  server.grpc().Shutdown(std::chrono::system_clock::now());
  EXPECT_FALSE(call.status().ok());
  EXPECT_FALSE(request.status().ok());
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  EXPECT_TRUE(server.WaitFor(InFlight("EmbedStream"), 0));
}

// This is how linserve ends when a batch outlasts the drain: the calls are gone, then the gRPC
// server, then the engines, whose workers still compute.
TEST(Drain, ABatchMayOutliveItsCallAndItsServer) {
  TestServer server;
  server.tokens().Hold();
  EmbeddingClient client(server.client_options());
  Ended call;
  Ended request;
  client.EmbedAsync(CallOf("tokens", {Tokens("a", {1})}), call.callback());
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("tokens", {Tokens("b", {1})}), request.stream_callback()).ok());
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  EXPECT_TRUE(server.WaitFor(InFlight("EmbedStream"), 1));
  server.DestroyGrpc();
  EXPECT_FALSE(call.status().ok());
  EXPECT_FALSE(request.status().ok());
  std::thread destroy([&] { server.DestroyRepository(); });
  server.tokens().LetGo();
  destroy.join();
  EXPECT_EQ(server.Scrape()[InFlight()], 0);
  EXPECT_EQ(server.Scrape()[InFlight("EmbedStream")], 0);
}

}  // namespace
}  // namespace linserve
