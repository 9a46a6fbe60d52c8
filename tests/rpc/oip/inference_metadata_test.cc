#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

TEST_F(InferTest, TellsWhatTheServerAndItsModelsAre) {
  {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    ASSERT_TRUE(stub_->ServerLive(&context, {}, &response).ok());
    EXPECT_TRUE(response.live());
  }
  for (const bool serving : {false, true}) {
    server_.grpc().SetServing(serving);
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    ASSERT_TRUE(stub_->ServerReady(&context, {}, &response).ok());
    EXPECT_EQ(response.ready(), serving);
  }
  {
    grpc::ClientContext context;
    inference::ServerMetadataResponse response;
    ASSERT_TRUE(stub_->ServerMetadata(&context, {}, &response).ok());
    EXPECT_EQ(response.name(), "linserve");
    EXPECT_EQ(response.version(), "test");
  }
  for (const auto& [name, ready] : {std::pair("tokens", true), {"late", false}, {"no", false}}) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    inference::ModelReadyResponse response;
    ASSERT_TRUE(stub_->ModelReady(&context, request, &response).ok());
    EXPECT_EQ(response.ready(), ready) << name;
  }
}

class InferTextMetadataTest : public testing::Test {
 protected:
  TestServer server_{{.text = true, .classifiers = {{"ranker", {"fits"}}}}};
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_ =
      inference::GRPCInferenceService::NewStub(
          grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials()));
};

TEST_F(InferTextMetadataTest, SaysThatClassifiersTakePairs) {
  grpc::ClientContext context;
  inference::ModelMetadataRequest request;
  request.set_name("ranker");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(stub_->ModelMetadata(&context, request, &metadata).ok());
  EXPECT_EQ(metadata.inputs().rbegin()->name(), "text");
  EXPECT_THAT(metadata.inputs().rbegin()->shape(), ElementsAre(-1, -1));
}

TEST_F(InferTextMetadataTest, ListsTextsAndAllOutputs) {
  grpc::ClientContext context;
  inference::ModelMetadataRequest request;
  request.set_name("tokens");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(stub_->ModelMetadata(&context, request, &metadata).ok());
  ASSERT_EQ(metadata.inputs_size(), 2);
  EXPECT_EQ(metadata.inputs(1).name(), "text");
  EXPECT_EQ(metadata.inputs(1).datatype(), "BYTES");
  EXPECT_THAT(metadata.inputs(1).shape(), ElementsAre(-1, 1));
  std::vector<std::string> outputs;
  for (const auto& output : metadata.outputs()) outputs.push_back(output.name());
  EXPECT_THAT(outputs, ElementsAre("y", "z", "tokens"));
  grpc::ClientContext of_config;
  inference::ModelConfigRequest config_request;
  config_request.set_name("tokens");
  inference::ModelConfigResponse config;
  ASSERT_TRUE(stub_->ModelConfig(&of_config, config_request, &config).ok());
  ASSERT_EQ(config.config().input_size(), 2);
  EXPECT_TRUE(config.config().input(0).optional());
  EXPECT_TRUE(config.config().input(1).optional());
  EXPECT_EQ(config.config().input(1).data_type(), inference::TYPE_STRING);
  EXPECT_EQ(config.config().output_size(), 3);
}

TEST_F(InferTest, DescribesAModelSoThatClientsCanMakeItsRequests) {
  inference::ModelMetadataResponse metadata;
  {
    grpc::ClientContext context;
    inference::ModelMetadataRequest request;
    request.set_name("floats");
    ASSERT_TRUE(stub_->ModelMetadata(&context, request, &metadata).ok());
  }
  EXPECT_EQ(metadata.name(), "floats");
  EXPECT_THAT(metadata.versions(), ElementsAre("1"));
  ASSERT_EQ(metadata.inputs_size(), 1);  // not the optional context
  EXPECT_EQ(metadata.inputs(0).name(), "x");
  EXPECT_EQ(metadata.inputs(0).datatype(), "FP32");
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(-1, -1, 3));
  ASSERT_EQ(metadata.outputs_size(), 1);
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, -1, 3));

  inference::ModelConfigResponse config;
  grpc::ClientContext context;
  inference::ModelConfigRequest request;
  request.set_name("floats");
  ASSERT_TRUE(stub_->ModelConfig(&context, request, &config).ok());
  EXPECT_GT(config.config().max_batch_size(), 1);
  ASSERT_EQ(config.config().input_size(), 1);
  EXPECT_EQ(config.config().input(0).name(), "x");
  EXPECT_THAT(config.config().input(0).dims(), ElementsAre(-1, 3));
  ASSERT_EQ(config.config().output_size(), 1);
  EXPECT_THAT(config.config().output(0).dims(), ElementsAre(-1, 3));
  EXPECT_TRUE(config.config().has_dynamic_batching());
  EXPECT_FALSE(config.config().model_transaction_policy().decoupled());
}

TEST(InferOfAPooledModel, IsDescribedAsTheVectorsThatItGives) {
  TestServer server({.default_pooling = Pooling::kMean});
  const auto stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  inference::ModelMetadataRequest request;
  request.set_name("tokens");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(stub->ModelMetadata(&context, request, &metadata).ok());
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, 4));
}

}  // namespace
}  // namespace linserve
