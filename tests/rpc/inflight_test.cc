#include <grpcpp/grpcpp.h>

#include <chrono>

#include "inference/grpc_service.grpc.pb.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

TEST(RpcInflight, WhatIsOverTheBoundsIsRefusedUntilSomethingEnds) {
  for (const Protocol protocol : {Protocol::kLinserve, Protocol::kOip}) {
    TestServer server({.grpc = {.inflight = {.max_requests_per_caller = 1}}});
    server.tokens().Hold();
    ClientOptions options = server.client_options();
    options.protocol = protocol;
    EmbeddingClient client(options);
    const EmbedCall call = CallOf("tokens", {Tokens("a", {1})});
    Ended first;
    client.EmbedAsync(call, first.callback());
    ASSERT_TRUE(server.tokens().WaitForStarted(1));
    EXPECT_GT(server.Scrape()["linserve_inflight_bytes"], 0);
    EXPECT_THAT(client.Embed(call),
                IsStatus(StatusCode::kResourceExhausted, "max_concurrent_requests_per_caller = 1"));
    server.tokens().LetGo();
    EXPECT_TRUE(first.status().ok());
    EXPECT_TRUE(server.WaitFor("linserve_inflight_bytes", 0));
    EXPECT_TRUE(client.Embed(call).ok());
  }
}

TEST(RpcInflight, ResultsCountFromTheBeginningAndUntilTheyAreRead) {
  // These 20 kB of ids take 320 kB, and have 320 kB of results.
  v1::EmbedRequest large;
  large.set_model("tokens");
  large.add_sequences()->mutable_token_ids()->Resize(static_cast<int>(kTestLongest), 1);
  TestServer server({.grpc = {.inflight = {.max_bytes = 700000, .max_bytes_per_caller = 700000}}});
  const auto stub = server.NewStub();
  const auto ask = [&] {
    grpc::ClientContext context;
    v1::EmbedResponse response;
    const auto reader = stub->Embed(&context, large);
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
  server.tokens().Hold();
  Ended held;
  EmbeddingClient client(server.client_options());
  client.EmbedAsync(CallOf("tokens", {Tokens("a", std::vector<int64_t>(5000, 1))}),
                    held.callback());
  ASSERT_TRUE(server.tokens().WaitForStarted(1));
  EXPECT_EQ(ask().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  server.tokens().LetGo();
  EXPECT_TRUE(held.status().ok());
  EXPECT_TRUE(server.WaitFor("linserve_inflight_bytes", 0));
  EXPECT_TRUE(ask().ok());
}

TEST(RpcInflight, WholeAnswersOnAStreamCountUntilTheyAreRead) {
  constexpr int kRequests = 60;  // whose 19 MB of results are more than gRPC keeps for a reader
  TestServer server;
  const auto stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()));
  inference::ModelInferRequest request;
  request.set_model_name("tokens");
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.set_datatype("INT64");
  input.add_shape(1);
  input.add_shape(kTestLongest);
  input.mutable_contents()->mutable_int64_contents()->Resize(static_cast<int>(kTestLongest), 1);
  grpc::ClientContext context;
  const auto stream = stub->ModelStreamInfer(&context);
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  ASSERT_TRUE(server.WaitFor(OfTokens("linserve_sequences_total"), kRequests));
  EXPECT_GT(server.Scrape()["linserve_inflight_bytes"], 4'000'000);
  inference::ModelStreamInferResponse response;
  int answers = 0;
  while (stream->Read(&response)) ++answers;
  EXPECT_EQ(answers, kRequests);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(server.WaitFor("linserve_inflight_bytes", 0));
}

}  // namespace
}  // namespace linserve
