#include <filesystem>

#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using inference::RepositoryIndexRequest;
using inference::RepositoryIndexResponse;
using inference::RepositoryModelLoadRequest;
using inference::RepositoryModelUnloadRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferenceRepositoryTest : public InferTest {
 protected:
  explicit InferenceRepositoryTest(bool model_control = true)
      : InferTest({.model_control = model_control}) {
    server_.WriteModel("extra");
  }

  grpc::Status Load(const std::string& model) {
    RepositoryModelLoadRequest request;
    request.set_model_name(model);
    return Load(request);
  }

  grpc::Status Load(const RepositoryModelLoadRequest& request) {
    grpc::ClientContext context;
    inference::RepositoryModelLoadResponse response;
    return stub_->RepositoryModelLoad(&context, request, &response);
  }

  grpc::Status Unload(const std::string& model) {
    grpc::ClientContext context;
    RepositoryModelUnloadRequest request;
    request.set_model_name(model);
    // tritonclient sends this parameter.
    (*request.mutable_parameters())["unload_dependents"].set_bool_param(false);
    inference::RepositoryModelUnloadResponse response;
    return stub_->RepositoryModelUnload(&context, request, &response);
  }

  // Returns "NAME VERSION STATE" of each version.
  std::vector<std::string> Index(bool ready) {
    grpc::ClientContext context;
    RepositoryIndexRequest request;
    request.set_ready(ready);
    RepositoryIndexResponse response;
    EXPECT_TRUE(stub_->RepositoryIndex(&context, request, &response).ok());
    std::vector<std::string> lines;
    for (const auto& model : response.models()) {
      lines.push_back(model.name() + " " + model.version() + " " + model.state());
    }
    return lines;
  }

  ModelInferRequest OfExtra() {
    ModelInferRequest request = TwoSequences();
    request.set_model_name("extra");
    return request;
  }
};

TEST_F(InferenceRepositoryTest, IndexTellsTheStateOfEveryVersion) {
  EXPECT_THAT(Index(false),
              ElementsAre("floats 1 READY", "late 1 LOADING", "tokens 1 READY", "tokens 2 READY"));
  EXPECT_THAT(Index(true), ElementsAre("floats 1 READY", "tokens 1 READY", "tokens 2 READY"));
}

TEST_F(InferenceRepositoryTest, CallersLoadAndUnloadModels) {
  ModelInferResponse response;
  EXPECT_EQ(Infer(OfExtra(), response).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Load("extra").ok());
  EXPECT_TRUE(Infer(OfExtra(), response).ok());
  EXPECT_TRUE(Load("extra").ok());
  EXPECT_TRUE(Unload("extra").ok());
  const grpc::Status status = Infer(OfExtra(), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("'extra' is not served: unloaded"));
  EXPECT_TRUE(Infer(TwoSequences(), response).ok());
}

TEST_F(InferenceRepositoryTest, SaysWhyAModelCannotBeLoaded) {
  EXPECT_EQ(Load("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Unload("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  RepositoryModelLoadRequest request;
  request.set_model_name("extra");
  (*request.mutable_parameters())["config"].set_string_param("{}");
  const grpc::Status status = Load(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("parameter 'config'"));
  server_.grpc().Drain();
  EXPECT_EQ(Load("extra").error_code(), grpc::StatusCode::UNAVAILABLE);
}

class WithoutModelControlTest : public InferenceRepositoryTest {
 protected:
  WithoutModelControlTest() : InferenceRepositoryTest(false) {}
};

TEST_F(WithoutModelControlTest, CallersMayNotLoadAndUnload) {
  EXPECT_EQ(Load("extra").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status status = Unload("tokens");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("--allow-model-control"));
  EXPECT_TRUE(Infer(TwoSequences()).raw_output_contents_size() == 1);
}

}  // namespace
}  // namespace linserve
