#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "rpc/raw_call.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

class ReflectionTest : public testing::Test {
 protected:
  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    EXPECT_TRUE(stream_->Write(request));
    ServerReflectionResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }

  TestServer server_;
  std::unique_ptr<grpc::reflection::v1::ServerReflection::Stub> stub_ =
      grpc::reflection::v1::ServerReflection::NewStub(
          grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<ServerReflectionRequest, ServerReflectionResponse>>
      stream_ = stub_->ServerReflectionInfo(&context_);
};

TEST_F(ReflectionTest, ListsTheServicesAndDescribesThem) {
  ServerReflectionRequest request;
  request.set_list_services("*");
  std::vector<std::string> names;
  const ServerReflectionResponse listed = Ask(request);
  for (const auto& service : listed.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, ElementsAre("linserve.v1.EmbeddingService", "inference.GRPCInferenceService",
                                 "tei.v1.Info", "tei.v1.Embed", "tei.v1.Tokenize", "tei.v1.Predict",
                                 "tei.v1.Rerank", "grpc.health.v1.Health",
                                 "grpc.reflection.v1.ServerReflection",
                                 "grpc.reflection.v1alpha.ServerReflection"));
  for (const std::string& name : names) {
    request.set_file_containing_symbol(name);
    google::protobuf::DescriptorPool pool;
    const ServerReflectionResponse described = Ask(request);
    for (const std::string& file : described.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto description;
      ASSERT_TRUE(description.ParseFromString(file));
      EXPECT_NE(pool.BuildFile(description), nullptr) << description.name();
    }
    EXPECT_NE(pool.FindServiceByName(name), nullptr) << name;
  }
  request.set_file_by_filename("linserve/v1/embedding.proto");
  EXPECT_EQ(Ask(request).file_descriptor_response().file_descriptor_proto_size(), 1);
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(ReflectionTest, IsThereUnderItsFormerNameToo) {
  const auto former = grpc::reflection::v1alpha::ServerReflection::NewStub(
      grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = former->ServerReflectionInfo(&context);
  grpc::reflection::v1alpha::ServerReflectionRequest request;
  request.set_file_containing_symbol("grpc.health.v1.Health");
  EXPECT_TRUE(stream->Write(request));
  grpc::reflection::v1alpha::ServerReflectionResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.file_descriptor_response().file_descriptor_proto_size(), 1);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ReflectionTest, AnswersWhatItDoesNotKnowWithAnError) {
  ServerReflectionRequest request;
  const auto expect_error = [&](grpc::StatusCode code) {
    EXPECT_EQ(Ask(request).error_response().error_code(), code) << request.ShortDebugString();
  };
  expect_error(grpc::StatusCode::INVALID_ARGUMENT);
  request.set_file_by_filename("no.proto");
  expect_error(grpc::StatusCode::NOT_FOUND);
  request.set_file_containing_symbol("no.Symbol");
  expect_error(grpc::StatusCode::NOT_FOUND);
  request.set_all_extension_numbers_of_type("no.Type");
  expect_error(grpc::StatusCode::NOT_FOUND);
  request.mutable_file_containing_extension()->set_containing_type("linserve.v1.Tensor");
  expect_error(grpc::StatusCode::NOT_FOUND);
  request.set_all_extension_numbers_of_type("linserve.v1.Tensor");
  EXPECT_EQ(Ask(request).all_extension_numbers_response().base_type_name(), "linserve.v1.Tensor");
}

TEST_F(ReflectionTest, DecodesNoQuestionThatIsLarge) {
  ServerReflectionRequest request;
  request.set_file_by_filename(std::string(1'000'000, 'a'));
  EXPECT_TRUE(stream_->Write(request));
  ServerReflectionResponse response;
  EXPECT_FALSE(stream_->Read(&response));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(UnknownMethod, IsAnsweredWithTheServicesThatThereAre) {
  const TestServer server;
  for (const char* method : {"/inference.GRPCInferenceService/TraceSetting", "/nobody/Nothing"}) {
    RawCall call(server, method, "anything");
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr(std::string("'") + method + "'"),
                                              HasSubstr("linserve.v1.EmbeddingService")));
  }
}

}  // namespace
}  // namespace linserve
