#include <grpcpp/grpcpp.h>

#include <set>

#include "inference/grpc_service.grpc.pb.h"
#include "rpc/raw_call.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
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
  server.grpc().SetModelsReady(false);
  EXPECT_EQ(*client.Health(), HealthState::kNotServing);
  EXPECT_EQ(*client.Health(service), HealthState::kNotServing);
  EXPECT_EQ(*client.Health("linserve/tokens"), HealthState::kServing);
  server.grpc().SetModelsReady(true);
  EXPECT_EQ(*client.Health(), HealthState::kServing);
  server.grpc().Drain();
  server.grpc().SetModelsReady(true);
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
  EXPECT_THAT(client.GetModel("none"),
              IsStatus(absl::StatusCode::kNotFound, "model 'none' is not found"));
  EXPECT_THAT(client.GetModel("late"), IsStatus(absl::StatusCode::kUnavailable, "is loading"));
}

TEST(Models, TellWhatBecomesOfTextsAndRows) {
  TestServer server({.default_pooling = Pooling::kCls,
                     .text = true,
                     .default_truncation = Truncation::kLeft,
                     .most_text_tokens = 9,
                     .prompts = {{"document", ""}, {"query", "the "}},
                     .default_prompt = "query"});
  const auto model = EmbeddingClient(server.client_options()).GetModel("tokens");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->pooling, "cls");
  EXPECT_FALSE(model->normalize);
  EXPECT_EQ(model->truncation, "left");
  EXPECT_EQ(model->max_text_tokens, 9);
  EXPECT_EQ(model->prompts, (std::vector<std::string>{"document", "query"}));
  EXPECT_EQ(model->default_prompt, "query");
}

TEST(Models, NameWhatTheyScore) {
  const std::vector<std::string> moods = {"sad", "so-so", "glad"};
  TestServer server({.text = true, .classifiers = {{"moods", moods}}});
  EmbeddingClient client(server.client_options());
  EXPECT_EQ(client.GetModel("moods")->labels, moods);
  EXPECT_TRUE(client.GetModel("tokens")->labels.empty());
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
