#include <grpcpp/grpcpp.h>

#include <chrono>

#include "inference/grpc_service.grpc.pb.h"
#include "rpc/access_fixture.h"
#include "rpc/raw_call.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

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

}  // namespace
}  // namespace linserve
