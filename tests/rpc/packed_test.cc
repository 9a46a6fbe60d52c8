#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "linserve/v1/embedding.grpc.pb.h"
#include "rpc/raw_call.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

// A request that is worth packing: gRPC's client sends others as they are.
v1::EmbedRequest RequestOfBytes(size_t bytes) {
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.set_request_id("7");
  auto& tensor = *request.add_sequences()->mutable_inputs();
  auto& ids = tensor["x"];
  ids.set_dtype(v1::DATA_TYPE_I64);
  ids.add_shape(static_cast<int64_t>(bytes / sizeof(int64_t)));
  ids.set_data(std::string(bytes, '\0'));
  return request;
}

class PackedTest : public testing::Test {
 protected:
  explicit PackedTest(GrpcOptions options = {}) : server_({.grpc = std::move(options)}) {}

  grpc::Status Embed(const v1::EmbedRequest& request,
                     grpc_compression_algorithm packed = GRPC_COMPRESS_GZIP) {
    grpc::ClientContext context;
    context.set_compression_algorithm(packed);
    const auto reader = server_.NewStub()->Embed(&context, request);
    while (reader->Read(&response_)) {
    }
    return reader->Finish();
  }

  TestServer server_;
  v1::EmbedResponse response_;
};

TEST_F(PackedTest, EveryCallTakesMessagesPackedByGzip) {
  const v1::EmbedRequest request = RequestOfBytes(1000 * sizeof(int64_t));
  const grpc::Status embedded = Embed(request);
  EXPECT_TRUE(embedded.ok()) << embedded.error_message();
  EXPECT_EQ(response_.code(), 0) << response_.message();
  EXPECT_EQ(response_.rows().shape(0), 1000);
  const auto stub = server_.NewStub();
  {
    grpc::ClientContext context;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    const auto stream = stub->EmbedStream(&context);
    for (const char* id : {"1", "2"}) {
      v1::EmbedRequest one = request;
      one.set_request_id(id);
      EXPECT_TRUE(stream->Write(one));
      EXPECT_TRUE(stream->Read(&response_));
      EXPECT_EQ(response_.request_id(), id);
      EXPECT_EQ(response_.code(), 0) << response_.message();
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::GetModelRequest question;
  question.set_model(std::string(10'000, 'a'));
  v1::Model model;
  EXPECT_THAT(stub->GetModel(&context, question, &model).error_message(), HasSubstr("at most 128"));
}

TEST_F(PackedTest, ZlibsFormatIsRefusedByItsName) {
  const grpc::Status status = Embed(RequestOfBytes(10'000), GRPC_COMPRESS_DEFLATE);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("deflate"));
}

TEST_F(PackedTest, WhatOnlyBeginsAsGzipDoesIsRefused) {
  RawCall call(server_, kEmbedRpc, "\x1f\x8bnothing");
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("begins as gzip does"));
}

class BoundedPackedTest : public PackedTest {
 protected:
  BoundedPackedTest() : PackedTest({.limits = {.max_message_bytes = 1 << 20}}) {}
};

TEST_F(BoundedPackedTest, AMessageIsBoundedByWhatItUnpacksTo) {
  const grpc::Status status = Embed(RequestOfBytes(4 << 20));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("more than the 1048576 bytes"));
  EXPECT_TRUE(Serves(server_));
}

class InflightPackedTest : public PackedTest {
 protected:
  InflightPackedTest() : PackedTest({.inflight = {.max_bytes = 4 << 20}}) {}
};

TEST_F(InflightPackedTest, WhatAMessageUnpacksToIsInFlight) {
  const grpc::Status status = Embed(RequestOfBytes(6 << 20));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("max_inflight_bytes"));
  EXPECT_TRUE(server_.WaitFor("linserve_inflight_bytes", 0));
}

}  // namespace
}  // namespace linserve
