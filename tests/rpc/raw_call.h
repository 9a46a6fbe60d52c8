#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/test_server.h"

namespace linserve {

inline constexpr const char* kEmbedRpc = "/linserve.v1.EmbeddingService/Embed";
inline constexpr const char* kEmbedStreamRpc = "/linserve.v1.EmbeddingService/EmbedStream";
inline constexpr const char* kGenerateRpc = "/linserve.v1.EmbeddingService/Generate";
inline constexpr const char* kInferRpc = "/inference.GRPCInferenceService/ModelInfer";
inline constexpr const char* kInferStreamRpc = "/inference.GRPCInferenceService/ModelStreamInfer";

// Makes one call of any kind, as bytes: for messages that are not of the protocol, and for services
// whose generated code the packages do not install. It is cancelled at its end if it still goes on.
class RawCall {
 public:
  // Sends `message` and half-closes. Without a token it sends none.
  RawCall(const TestServer& server, const std::string& method, const std::string& message,
          const std::string& token = "")
      : stub_(grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(WithToken(token), method, &queue_)) {
    call_->StartCall(nullptr);
    EXPECT_TRUE(Ended());
    const grpc::Slice slice(message);
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    Ended();  // the server may have answered already
  }
  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  ~RawCall() {
    if (finished_) return;
    context_.TryCancel();
    Finish();
  }

  // Waits for a message, which must come.
  std::string Read() {
    grpc::ByteBuffer response;
    call_->Read(&response, nullptr);
    EXPECT_TRUE(Ended());
    grpc::Slice bytes;
    EXPECT_TRUE(response.DumpToSingleSlice(&bytes).ok());
    return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
  }

  // Waits for the end.
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    EXPECT_TRUE(Ended());
    finished_ = true;
    return status;
  }

 private:
  grpc::ClientContext* WithToken(const std::string& token) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    return &context_;
  }

  bool Ended() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

}  // namespace linserve
