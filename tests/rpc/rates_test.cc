#include <grpcpp/grpcpp.h>

#include <chrono>

#include "core/files/gzip.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "rpc/access_fixture.h"
#include "rpc/raw_call.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

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

}  // namespace
}  // namespace linserve
