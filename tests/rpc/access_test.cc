#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>

#include "core/files/gzip.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "rpc/raw_call.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

constexpr char kAll[] = "the token of everything";
constexpr char kOne[] = "the token of one model";
constexpr char kWatch[] = "the token of metrics";
constexpr char kSlow[] = "the token of slowness";

std::string TokensFile() {
  return std::string(R"({"tokens": [)") +
         R"({"name": "all", "may": ["infer", "control"], "token": ")" + kAll +
         R"("}, {"name": "one", "models": ["tokens"], "token": ")" + kOne +
         R"("}, {"name": "watch", "may": ["metrics"], "token": ")" + kWatch +
         R"("}, {"name": "slow", "requests_per_second": 0.5, "token": ")" + kSlow + R"("}]})";
}

class RpcAccess : public testing::Test {
 protected:
  RpcAccess() { WriteAll(file_, TokensFile()); }

  TestServer& server() {
    if (!server_) {
      server_.emplace(
          TestServerOptions{.grpc = {.access = {.tokens_file = file_}}, .model_control = true});
    }
    return *server_;
  }

  EmbeddingClient ClientOf(const std::string& token, Protocol protocol = Protocol::kLinserve) {
    ClientOptions options = server().client_options();
    options.token = token;
    options.protocol = protocol;
    return EmbeddingClient(options);
  }

  double Refused(const std::string& reason) {
    return server().Scrape()[R"(linserve_refused_total{reason=")" + reason + "\"}"];
  }

  TempDir directory_;
  const std::string file_ = directory_.File("tokens.json");
  std::optional<TestServer> server_;
  const EmbedCall call_ = CallOf("tokens", {Tokens("a", {1, 2})});
};

TEST_F(RpcAccess, TokensThatAreComputedAreCountedByTheNameOfTheCallersToken) {
  for (const Protocol protocol : {Protocol::kLinserve, Protocol::kOip}) {
    EXPECT_TRUE(ClientOf(kOne, protocol).Embed(call_).ok());
  }
  EXPECT_TRUE(server().WaitFor(R"(linserve_caller_tokens_total{caller="one"})", 4));
}

TEST_F(RpcAccess, NothingIsUnpackedForACallerWhoMayNotInfer) {
  const std::string packed = "\x1f\x8b\x08 and nothing that gzip would make";
  for (const std::string method :
       {"/linserve.v1.EmbeddingService/Embed", "/inference.GRPCInferenceService/ModelInfer"}) {
    EXPECT_EQ(RawCall(server(), method, packed, kAll).Finish().error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(RawCall(server(), method, packed, kWatch).Finish().error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(RpcAccess, OnAStreamAPackedMessageOverTheRateIsRefusedAlone) {
  ASSERT_TRUE(ClientOf(kSlow).Embed(call_).ok());
  v1::EmbedRequest request;
  request.set_request_id("mine");
  RawCall call(server(), "/linserve.v1.EmbeddingService/EmbedStream",
               Gzip(request.SerializeAsString()), kSlow);
  v1::EmbedResponse refused;
  ASSERT_TRUE(refused.ParseFromString(call.Read()));
  EXPECT_EQ(refused.request_id(), "mine");
  EXPECT_THAT(refused.message(), testing::HasSubstr("requests_per_second"));
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(RpcAccess, WhatIsUnpackedInVainIsPaidFor) {
  const std::string token = "the token of few bytes";
  WriteAll(file_,
           R"({"tokens": [{"name": "few", "bytes_per_second": 1000, "token": ")" + token + "\"}]}");
  std::string packed = Gzip(std::string(1 << 20, 'a'));
  packed[packed.size() - 8] ^= 1;  // of the checksum
  const std::string method = "/linserve.v1.EmbeddingService/Embed";
  EXPECT_EQ(RawCall(server(), method, packed, token).Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RawCall(server(), method, packed, token).Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RpcAccess, ABudgetPaysForEachChunkOfASequence) {
  const std::string token = "the token of few bytes";
  WriteAll(file_,
           R"({"tokens": [{"name": "few", "bytes_per_second": 1000, "token": ")" + token + "\"}]}");
  ClientOptions options = server().client_options();
  options.token = token;
  options.timeout = std::chrono::milliseconds(500);  // it would come again, when the server says
  const auto stub = v1::EmbeddingService::NewStub(
      grpc::CreateChannel(options.target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token);
  const auto stream = stub->EmbedStream(&context);
  for (uint64_t row = 0; row < 3; ++row) {
    v1::EmbedRequest chunk;
    chunk.set_model("tokens");
    chunk.set_request_id("7");
    v1::Sequence& sequence = *chunk.add_sequences();
    sequence.set_first_row(row);
    sequence.set_total_rows(3);
    sequence.add_token_ids(5);
    if (row > 0)
      chunk.GetReflection()->MutableUnknownFields(&chunk)->AddLengthDelimited(
          1000, std::string(100'000, 'x'));
    ASSERT_TRUE(stream->Write(chunk));
  }
  v1::EmbedResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), 0) << response.message();
  stream->WritesDone();
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EmbeddingClient client(options);
  EmbedCall call = call_;
  EXPECT_THAT(client.Embed(call).status(),
              IsStatus(StatusCode::kResourceExhausted, "bytes_per_second"));
}

TEST_F(RpcAccess, EveryRpcButHealthAndReflectionNeedsAToken) {
  const std::string oip = "/inference.GRPCInferenceService/";
  const std::string own = "/linserve.v1.EmbeddingService/";
  int refused = 0;
  for (const std::string& method :
       {own + "Embed", own + "EmbedStream", own + "ListModels", own + "GetModel",
        oip + "ModelReady", oip + "ServerMetadata", oip + "ModelMetadata", oip + "ModelConfig",
        oip + "ModelInfer", oip + "ModelStreamInfer", oip + "ModelStatistics",
        oip + "RepositoryIndex", oip + "RepositoryModelLoad", oip + "RepositoryModelUnload"}) {
    const grpc::Status status = RawCall(server(), method, "").Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_THAT(status.error_message(), testing::HasSubstr("authorization: Bearer")) << method;
    ++refused;
  }
  EXPECT_EQ(Refused("unauthenticated"), refused);
  for (const std::string& method :
       {oip + "ServerLive", oip + "ServerReady", std::string("/grpc.health.v1.Health/Check")}) {
    RawCall call(server(), method, "");
    call.Read();
    EXPECT_TRUE(call.Finish().ok()) << method;
  }
}

TEST_F(RpcAccess, AKnownTokenIsServedByBothProtocols) {
  for (const Protocol protocol : {Protocol::kLinserve, Protocol::kOip}) {
    EXPECT_TRUE(ClientOf(kAll, protocol).Embed(call_).ok());
    EXPECT_THAT(ClientOf("another token", protocol).Embed(call_),
                IsStatus(StatusCode::kUnauthenticated, "the token is not known"));
  }
}

TEST_F(RpcAccess, ATokenSeesAndUsesItsModelsOnly) {
  EmbeddingClient client = ClientOf(kOne);
  EXPECT_TRUE(client.Embed(call_).ok());
  const EmbedCall other = CallOf("floats", {Floats("a", {1, 2, 3})});
  EXPECT_THAT(client.Embed(other), IsStatus(StatusCode::kPermissionDenied, "may not use model"));
  EXPECT_THAT(ClientOf(kOne, Protocol::kOip).Embed(other),
              IsStatus(StatusCode::kPermissionDenied, "may not use model"));
  const auto models = client.ListModels();
  ASSERT_TRUE(models.ok());
  for (const ModelDescription& model : *models) EXPECT_EQ(model.name, "tokens");
  EXPECT_THAT(client.GetModel("floats"),
              IsStatus(StatusCode::kPermissionDenied, "may not use model"));
  // A model that the token may not see is answered like one that does not exist, and no error tells
  // of it.
  EXPECT_THAT(client.GetModel("nobody"),
              IsStatus(StatusCode::kPermissionDenied, "may not use model"));
  EXPECT_EQ(client.GetModel("tokens", 9).status().message(), "model 'tokens' is not found");
  EXPECT_TRUE(client.Embed(CallOf("", {Tokens("a", {1})})).ok());  // it has but one
  EXPECT_EQ(Refused("forbidden"), 4);
}

TEST_F(RpcAccess, AnotherNameOfAModelTellsATokenNothingOfIt) {
  EmbeddingClient client = ClientOf(kOne);
  for (const std::string name : {"org/floats", "org/nobody"}) {
    EXPECT_THAT(client.GetModel(name),
                IsStatus(StatusCode::kPermissionDenied, "may not use model '" + name + "'"));
  }
  EXPECT_TRUE(client.GetModel("org/tokens").ok());
}

TEST_F(RpcAccess, WhoNamesNoModelIsNotToldOfTheOnlyOneThatIsGone) {
  const std::string token = "the token of two others";
  WriteAll(file_,
           R"({"tokens": [{"name": "two", "models": ["a", "b"], "token": ")" + token + "\"}]}");
  ModelRepository& repository = server().repository();
  for (const int64_t version : {1, 2}) repository.Forget("tokens", version);
  repository.Forget("late", 1);
  repository.Withdraw("floats", 1, "a reason");
  const auto embedded = ClientOf(token).Embed(CallOf("", {Tokens("a", {1})}));
  EXPECT_THAT(embedded, IsStatus(StatusCode::kUnavailable,
                                 "no model was named, and none is served at the moment"));
  EXPECT_THAT(embedded.status().message(), testing::Not(testing::HasSubstr("floats")));
}

TEST_F(RpcAccess, ATokenDoesWhatItMayOnly) {
  EXPECT_THAT(ClientOf(kWatch).Embed(call_), IsStatus(StatusCode::kPermissionDenied, "compute"));
  const auto load = [&](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    inference::RepositoryModelLoadRequest request;
    request.set_model_name("absent");
    inference::RepositoryModelLoadResponse response;
    const auto channel = grpc::CreateChannel(server().target(), grpc::InsecureChannelCredentials());
    return inference::GRPCInferenceService::NewStub(channel)->RepositoryModelLoad(&context, request,
                                                                                  &response);
  };
  EXPECT_EQ(load(kOne).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(load(kAll).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcAccess, OverItsRateATokenIsToldWhenToComeBack) {
  const auto stub = server().NewStub();
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  const auto ask = [&](grpc::ClientContext& context) {
    context.AddMetadata("authorization", std::string("Bearer ") + kSlow);
    v1::EmbedResponse response;
    const auto reader = stub->Embed(&context, request);
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
  grpc::ClientContext first;
  EXPECT_TRUE(ask(first).ok());
  grpc::ClientContext second;
  const grpc::Status status = ask(second);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("requests_per_second"));
  const auto& trailers = second.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, trailers.end());
  const int delay = std::stoi(std::string(pushback->second.data(), pushback->second.size()));
  EXPECT_GT(delay, 0);
  EXPECT_LE(delay, 2000);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::RetryInfo info;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.retry_delay().seconds() * 1000 + info.retry_delay().nanos() / 1000000, delay);
  EXPECT_EQ(Refused("rate"), 1);
}

TEST_F(RpcAccess, WhatCannotBeDecodedSpendsOfTheRateToo) {
  const auto ask = [&] {
    return RawCall(server(), "/linserve.v1.EmbeddingService/Embed", "\xff\xff\xff", kSlow)
        .Finish()
        .error_code();
  };
  EXPECT_EQ(ask(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ask(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// A request that is refused is answered by its id, though nothing else of the message can be
// decoded.
TEST_F(RpcAccess, OnStreamsACallerIsAdmittedBeforeItsMessageIsDecoded) {
  ASSERT_TRUE(ClientOf(kSlow).Embed(call_).ok());
  const std::string junk = "\x07";
  v1::EmbedRequest request;
  request.set_request_id("mine");
  RawCall embed(server(), "/linserve.v1.EmbeddingService/EmbedStream",
                request.SerializeAsString() + junk, kSlow);
  v1::EmbedResponse refused;
  ASSERT_TRUE(refused.ParseFromString(embed.Read()));
  EXPECT_EQ(refused.request_id(), "mine");
  EXPECT_THAT(refused.message(), testing::HasSubstr("requests_per_second"));
  EXPECT_TRUE(embed.Finish().ok());

  inference::ModelInferRequest infer;
  infer.set_id("mine");
  RawCall oip(server(), "/inference.GRPCInferenceService/ModelStreamInfer",
              infer.SerializeAsString() + junk, kSlow);
  inference::ModelStreamInferResponse answer;
  ASSERT_TRUE(answer.ParseFromString(oip.Read()));
  EXPECT_EQ(answer.infer_response().id(), "mine");
  EXPECT_THAT(answer.error_message(), testing::HasSubstr("requests_per_second"));
  EXPECT_TRUE(oip.Finish().ok());
}

TEST_F(RpcAccess, OverItsRateAChunkTooManyIsNoAnswerToTheSequenceThatIsComputed) {
  server().tokens().Hold();
  grpc::ClientContext context;
  context.AddMetadata("authorization", std::string("Bearer ") + kSlow);
  const auto stub = server().NewStub();
  const auto stream = stub->EmbedStream(&context);
  const auto send = [&](const std::string& id, uint64_t first_row) {
    v1::EmbedRequest request;
    request.set_request_id(id);
    request.set_model("tokens");
    v1::Sequence& chunk = *request.add_sequences();
    chunk.set_total_rows(2);
    chunk.set_first_row(first_row);
    chunk.add_token_ids(1);
    ASSERT_TRUE(stream->Write(request));
  };
  send("whole", 0);
  send("whole", 1);  // paid for with the first chunk
  ASSERT_TRUE(server().tokens().WaitForStarted(1));
  send("whole", 2);
  send("other", 0);
  v1::EmbedResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "other");
  EXPECT_TRUE(response.request_failed());
  server().tokens().LetGo();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "whole");
  EXPECT_FALSE(response.request_failed()) << response.message();
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(RpcAccess, AWithdrawnTokenEndsWithinSecondsOnOpenStreamsToo) {
  EmbeddingClient client = ClientOf(kAll);
  const auto stream = client.OpenStream();
  Ended first;
  ASSERT_TRUE(stream->Send(call_, first.stream_callback()).ok());
  ASSERT_TRUE(first.status().ok());
  WriteAll(file_, R"({"tokens": [{"name": "new", "token": "0123456789abcdef"}]})");
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (client.Embed(call_).ok() && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_THAT(client.Embed(call_), IsStatus(StatusCode::kUnauthenticated, "not known"));
  Ended second;
  ASSERT_TRUE(stream->Send(call_, second.stream_callback()).ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnauthenticated);
  EXPECT_TRUE(ClientOf("0123456789abcdef").Embed(call_).ok());
}

TEST_F(RpcAccess, NoSecretIsInTheMetrics) {
  EXPECT_TRUE(ClientOf(kAll).Embed(call_).ok());
  EXPECT_FALSE(ClientOf("a secret that is wrong").Embed(call_).ok());
  const Scraped scraped = server().Scrape();
  for (const auto& [series, value] : scraped.samples) {
    EXPECT_THAT(series, testing::Not(testing::AnyOf(testing::HasSubstr("the token of"),
                                                    testing::HasSubstr("secret"))));
  }
}

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
