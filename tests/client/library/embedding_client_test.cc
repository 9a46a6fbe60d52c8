#include "client/library/embedding_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "client/fake_server.h"
#include "support/test_tensors.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EmbedCall CallOf(std::vector<NamedSequence> sequences) {
  EmbedCall call;
  call.sequences = std::move(sequences);
  return call;
}

struct Ended {
  absl::Status status;
  std::vector<SequenceResult> results;
};

// Waits for an asynchronous call.
class Waiter {
 public:
  EmbedCallback callback() {
    return [this](absl::Status status, std::vector<SequenceResult> results) {
      promise_.set_value({std::move(status), std::move(results)});
    };
  }
  Ended Wait() { return promise_.get_future().get(); }

 private:
  std::promise<Ended> promise_;
};

TEST(EmbeddingClient, AsksNoProxyForThisMachine) {
  ::setenv("http_proxy", "http://127.0.0.1:1", /*replace=*/1);
  FakeServer server;
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf({Tokens("a", {5})}));
  ::unsetenv("http_proxy");
  EXPECT_TRUE(results.ok()) << results.status();
}

TEST(EmbeddingClient, PutsChunksTogetherAndResultsInOrder) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  EmbedCall call = CallOf({Tokens("a", {5, 6, 7}), Tokens("b", {8})});
  call.rows_per_chunk = 2;
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2U);
  EXPECT_EQ(results->at(0).id, "a");
  EXPECT_EQ(results->at(0).tokens, 3);
  EXPECT_EQ(results->at(0).outputs.at("y").shape(), (Shape{3, 3}));
  EXPECT_THAT(Values(results->at(0).outputs.at("y")), ElementsAre(5, 0, 3, 6, 1, 3, 7, 2, 3));
  EXPECT_EQ(results->at(0).timing.queue, std::chrono::milliseconds(1));
  EXPECT_EQ(results->at(0).timing.batch_sequences, 2);
  EXPECT_THAT(Values(results->at(1).outputs.at("y")), ElementsAre(8, 0, 1));
}

TEST(EmbeddingClient, AFaultOfOneSequenceLeavesItsNeighboursAlone) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf({Tokens("good", {1}), Tokens("bad", {1013})}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->at(0).status.ok());
  EXPECT_EQ(results->at(1).status, absl::InvalidArgumentError("token 1013 brings bad luck"));
  EXPECT_TRUE(results->at(1).outputs.empty());
}

TEST(EmbeddingClient, TriesAgainWhileTheServerIsUnavailable) {
  FakeServer server({.refuse_calls = 2});
  EmbeddingClient client(server.client_options());
  EXPECT_TRUE(client.Embed(CallOf({Tokens("a", {1})})).ok());
  EXPECT_EQ(server.service().calls().size(), 3U);
}

TEST(EmbeddingClient, GivesUpAfterItsAttempts) {
  FakeServer server({.refuse_calls = 100});
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf({Tokens("a", {1})}));
  EXPECT_EQ(results.status(), absl::UnavailableError("loading"));
  EXPECT_EQ(server.service().calls().size(), 4U);
}

TEST(EmbeddingClient, ComesBackWhenAServerWithoutRoomSaysSo) {
  FakeServer server({.put_off_calls = 6});
  EmbeddingClient client(server.client_options());
  EXPECT_TRUE(client.Embed(CallOf({Tokens("a", {1})})).ok());
  EXPECT_EQ(server.service().calls().size(), 7U);
}

TEST(EmbeddingClient, WaitsForAServerThatHasAnsweredBefore) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  EXPECT_TRUE(client.Embed(CallOf({Tokens("a", {1})})).ok());
  server.service().Refuse(6);
  EXPECT_TRUE(client.Embed(CallOf({Tokens("a", {1})})).ok());
  EXPECT_EQ(server.service().calls().size(), 8U);
}

TEST(EmbeddingClient, SendsAgainOnlyWhatHasNoResult) {
  FakeServer server({.break_calls = 1});
  EmbeddingClient client(server.client_options());
  std::vector<size_t> indices;
  const auto status = client.Embed(CallOf({Tokens("a", {1}), Tokens("b", {2}), Tokens("c", {3})}),
                                   [&](const SequenceResult& result) {
                                     indices.push_back(result.index);
                                     EXPECT_EQ(Values(result.outputs.at("y"))[0],
                                               static_cast<float>(result.index + 1));
                                   });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(indices, ElementsAre(2, 1, 0));
  EXPECT_THAT(server.service().calls(), ElementsAre(3, 2));
}

TEST(EmbeddingClient, TriesUnavailableSequencesAgain) {
  FakeServer server({.unavailable_results = 1});
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf({Tokens("a", {1}), Tokens("b", {2})}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->at(0).status.ok());
  EXPECT_TRUE(results->at(1).status.ok());
  EXPECT_THAT(server.service().calls(), ElementsAre(2, 1));
}

TEST(EmbeddingClient, HandsOverUnavailableSequencesInTheEnd) {
  FakeServer server({.unavailable_results = 100});
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf({Tokens("a", {1})}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(0).status, absl::UnavailableError("draining"));
}

TEST(EmbeddingClient, ACallThatForgetsASequenceIsInternal) {
  FakeServer server({.drop_last_result = true});
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf({Tokens("a", {1}), Tokens("b", {2})}));
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(results.status().ToString(), HasSubstr("without a result for 1 sequences"));
}

TEST(EmbeddingClient, ACallEndsAtItsDeadline) {
  FakeServer server;
  ClientOptions options = server.client_options();
  options.timeout = std::chrono::milliseconds(100);
  EmbeddingClient client(options);
  const auto results = client.Embed(CallOf({Tokens("a", {1099})}));
  EXPECT_EQ(results.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(EmbeddingClient, TellsHowToReachAServer) {
  ClientOptions options;
  options.target = "127.0.0.1:1";
  options.backoff.initial = std::chrono::milliseconds(2);
  EmbeddingClient client(options);
  const auto models = client.ListModels();
  EXPECT_EQ(models.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(models.status().ToString(), HasSubstr("cannot reach a server at 127.0.0.1:1"));
  EXPECT_THAT(models.status().ToString(), HasSubstr("linserve serve"));
  EXPECT_THAT(models.status().ToString(), HasSubstr("--target"));
}

TEST(EmbeddingClient, DescribesModels) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  const auto models = client.ListModels();
  ASSERT_TRUE(models.ok()) << models.status();
  const ModelDescription& model = models->at(0);
  EXPECT_EQ(model.name, "fake");
  EXPECT_EQ(LongestFor(model.signature, Item(), 'n'), 64);
  EXPECT_EQ(model.signature.FindInput("x")->kind, InputKind::kToken);
  EXPECT_EQ(model.signature.FindInput("x")->vocabulary, 256);
  EXPECT_THAT(model.signature.FindOutput("y")->axes,
              ElementsAre(Axis::Ragged('n'), Axis::Fixed(3)));
  EXPECT_EQ(client.GetModel("other").status(), absl::NotFoundError("no model 'other'"));
}

TEST(EmbeddingClient, AsksForHealth) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  EXPECT_EQ(*client.Health(), HealthState::kServing);
  EXPECT_EQ(*client.Health("no.such.Service"), HealthState::kServiceUnknown);
}

TEST(EmbeddingClient, AsynchronousCallsEndOnce) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Waiter waiter;
  client.EmbedAsync(CallOf({Tokens("a", {4}), Tokens("b", {1013})}), waiter.callback());
  const Ended ended = waiter.Wait();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_THAT(Values(ended.results[0].outputs.at("y")), ElementsAre(4, 0, 1));
  EXPECT_FALSE(ended.results[1].status.ok());
}

TEST(EmbeddingClient, AsynchronousCallsCanBeCancelled) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Waiter waiter;
  const auto call = client.EmbedAsync(CallOf({Tokens("a", {1099})}), waiter.callback());
  call->Cancel();
  EXPECT_EQ(waiter.Wait().status.code(), absl::StatusCode::kCancelled);
}

TEST(EmbeddingClient, DestroyingItEndsAsynchronousCalls) {
  FakeServer server;
  std::vector<absl::StatusCode> codes;
  {
    EmbeddingClient client(server.client_options());
    client.EmbedAsync(CallOf({Tokens("a", {1099})}),
                      [&codes](const absl::Status& status, const std::vector<SequenceResult>&) {
                        codes.push_back(status.code());
                      });
  }
  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kCancelled));
}

TEST(EmbeddingClient, AsynchronousCallsAreNotTriedAgain) {
  FakeServer server({.refuse_calls = 1});
  EmbeddingClient client(server.client_options());
  Waiter waiter;
  client.EmbedAsync(CallOf({Tokens("a", {1})}), waiter.callback());
  EXPECT_EQ(waiter.Wait().status, absl::UnavailableError("loading"));
}

}  // namespace
}  // namespace linserve
