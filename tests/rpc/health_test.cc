#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>

#include <set>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "rpc/raw_call.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;

TEST(Health, TellsOfTheServerTheServiceAndEachModel) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  const std::string service = "linserve.v1.EmbeddingService";
  EXPECT_EQ(*client.Health(), HealthState::kNotServing);
  EXPECT_EQ(*client.Health(service), HealthState::kNotServing);
  EXPECT_EQ(*client.Health("linserve/tokens"), HealthState::kServiceUnknown);
  server.grpc().SetModelServing("tokens", true);
  EXPECT_EQ(*client.Health("linserve/tokens"), HealthState::kServing);
  EXPECT_EQ(*client.Health(), HealthState::kNotServing);
  server.grpc().SetServing(true);
  EXPECT_EQ(*client.Health(), HealthState::kServing);
  EXPECT_EQ(*client.Health(service), HealthState::kServing);
  server.grpc().Drain();
  EXPECT_EQ(*client.Health(), HealthState::kNotServing);
  EXPECT_EQ(*client.Health(service), HealthState::kNotServing);
  EXPECT_EQ(*client.Health("linserve/tokens"), HealthState::kNotServing);
}

TEST(Health, OfLiveIsWhetherTheProcessNeedNotBeReplaced) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  EXPECT_EQ(*client.Health("live"), HealthState::kServing);
  server.grpc().Drain();
  EXPECT_EQ(*client.Health("live"), HealthState::kServing);
  server.grpc().SetLive(false);
  EXPECT_EQ(*client.Health("live"), HealthState::kNotServing);
}

// These are the numbers of grpc.health.v1's ServingStatus, whose generated code the package does
// not install.
constexpr int kServing = 1;
constexpr int kNotServing = 2;
constexpr int kServiceUnknown = 3;

// Makes one call of grpc.health.v1.Health/Watch.
class Watch {
 public:
  Watch(const TestServer& server, const std::string& service)
      : call_(server, "/grpc.health.v1.Health/Watch",
              "\x0a" + std::string(1, static_cast<char>(service.size())) + service) {}

  // Waits until this status is said, and returns whatever else was said before.
  std::set<int> Until(int status) {
    std::set<int> before;
    for (int said = Next(); said != status; said = Next()) before.insert(said);
    return before;
  }

 private:
  int Next() {
    const std::string bytes = call_.Read();
    return bytes.size() == 2 ? bytes[1] : 0;  // field 1, a varint; nothing is 0
  }

  RawCall call_;
};

TEST(Health, WatchersHearOfModelsThatComeAndGo) {
  TestServer server({.model_control = true});
  server.WriteModel("extra");
  const auto stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()));
  const auto load = [&] {
    grpc::ClientContext context;
    inference::RepositoryModelLoadRequest request;
    request.set_model_name("extra");
    inference::RepositoryModelLoadResponse response;
    EXPECT_TRUE(stub->RepositoryModelLoad(&context, request, &response).ok());
  };
  Watch watch(server, "linserve/extra");
  EXPECT_THAT(watch.Until(kServiceUnknown), IsEmpty());
  load();
  EXPECT_THAT(watch.Until(kServing), IsSubsetOf({kNotServing}));
  load();  // the model is replaced, and is never gone
  grpc::ClientContext context;
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name("extra");
  inference::RepositoryModelUnloadResponse response;
  EXPECT_TRUE(stub->RepositoryModelUnload(&context, request, &response).ok());
  EXPECT_THAT(watch.Until(kNotServing), IsSubsetOf({kServing}));
  load();
  EXPECT_THAT(watch.Until(kServing), IsSubsetOf({kNotServing}));
  server.grpc().Drain();
  EXPECT_THAT(watch.Until(kNotServing), IsSubsetOf({kServing}));
}

TEST(Health, WatchersHearOnlyWhatIsNewAndHoldNobodyUp) {
  TestServer server;
  Watch watch(server, "live");
  EXPECT_THAT(watch.Until(kServing), IsEmpty());
  for (int i = 0; i < 3; ++i) server.grpc().SetLive(true);
  server.grpc().SetLive(false);
  EXPECT_THAT(watch.Until(kNotServing), IsEmpty());
  server.grpc().Drain();
  // If watchers held the end up, the test would take the hour.
  server.grpc().Shutdown(std::chrono::system_clock::now() + std::chrono::hours(1));
}

TEST(Models, AreListedWithWhatTheyTakeAndGive) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  const auto models = client.ListModels();
  ASSERT_TRUE(models.ok()) << models.status();
  std::vector<std::string> names;
  for (const ModelDescription& model : *models) {
    names.push_back(model.name + "/" + std::to_string(model.version) + " " + model.state);
  }
  EXPECT_THAT(names, ElementsAre("floats/1 READY", "tokens/1 READY", "tokens/2 READY"));
}

TEST(Models, AreDescribedInFull) {
  TestServer server({.padding = Padding::kBucket});
  EmbeddingClient client(server.client_options());
  const auto tokens = client.GetModel("tokens");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->version, 2);
  EXPECT_EQ(tokens->architecture, "test.Tokens");
  EXPECT_EQ(tokens->parameters, 7);
  EXPECT_EQ(tokens->dtype, "F32");
  EXPECT_EQ(tokens->padding, "bucket");
  const InputSpec* x = tokens->signature.FindInput("x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->kind, InputKind::kToken);
  EXPECT_EQ(x->vocabulary, kTestVocabulary);
  EXPECT_THAT(x->axes, ElementsAre(Axis::Ragged('n')));
  EXPECT_EQ(tokens->signature.outputs.size(), 2U);
  ASSERT_EQ(tokens->signature.limits.size(), 1U);
  EXPECT_EQ(tokens->signature.limits[0].longest, kTestLongest);

  const auto floats = client.GetModel("floats");
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_TRUE(floats->signature.FindInput("context")->optional);
  EXPECT_THAT(floats->signature.FindOutput("y")->axes,
              ElementsAre(Axis::Ragged('n'), Axis::Fixed(3)));
}

TEST(Models, AreFoundByVersionOrNotAtAll) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  EXPECT_EQ(client.GetModel("tokens", 1)->version, 1);
  EXPECT_THAT(client.GetModel("tokens", 9), IsStatus(absl::StatusCode::kNotFound, "version 9"));
  EXPECT_THAT(client.GetModel("none"), IsStatus(absl::StatusCode::kNotFound, "no model 'none'"));
  EXPECT_THAT(client.GetModel("late"), IsStatus(absl::StatusCode::kUnavailable, "is loading"));
}

using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

class ReflectionTest : public testing::Test {
 protected:
  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    EXPECT_TRUE(stream_->Write(request));
    ServerReflectionResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }

  TestServer server_;
  std::unique_ptr<grpc::reflection::v1alpha::ServerReflection::Stub> stub_ =
      grpc::reflection::v1alpha::ServerReflection::NewStub(
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
                                 "tei.v1.Rerank", "grpc.reflection.v1alpha.ServerReflection",
                                 "grpc.health.v1.Health"));
  request.set_file_containing_symbol("inference.GRPCInferenceService");
  google::protobuf::DescriptorPool pool;
  const ServerReflectionResponse described = Ask(request);
  for (const std::string& file : described.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto description;
    ASSERT_TRUE(description.ParseFromString(file));
    EXPECT_NE(pool.BuildFile(description), nullptr) << description.name();
  }
  EXPECT_NE(pool.FindServiceByName("inference.GRPCInferenceService"), nullptr);
  EXPECT_NE(pool.FindMessageTypeByName("inference.ModelConfig"), nullptr);
  request.set_file_by_filename("linserve/v1/embedding.proto");
  EXPECT_EQ(Ask(request).file_descriptor_response().file_descriptor_proto_size(), 1);
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
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

TEST(Health, RefusesANameThatIsTooLong) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  EXPECT_EQ(*client.Health(std::string(200, 'a')), HealthState::kServiceUnknown);
  EXPECT_EQ(client.Health(std::string(201, 'a')).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Port, InUseIsReportedWithTheWayOut) {
  TestServer server;
  Metrics metrics({});
  GrpcOptions options;
  options.address.port = server.grpc().port();
  const auto second = GrpcServer::Start(options, server.repository(), metrics);
  EXPECT_THAT(second, IsStatus(absl::StatusCode::kUnavailable, "--grpc-address HOST:PORT"));
}

}  // namespace
}  // namespace linserve
