#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "support/test_server.h"

namespace linserve {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using InferInput = ModelInferRequest::InferInputTensor;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline InferInput& AddInput(ModelInferRequest& request, const std::string& name,
                            const std::string& datatype, const Shape& shape) {
  InferInput& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  input.mutable_shape()->Assign(shape.begin(), shape.end());
  return input;
}

template <typename T>
void AddRaw(ModelInferRequest& request, const std::string& name, const std::string& datatype,
            const Shape& shape, const std::vector<T>& values) {
  AddInput(request, name, datatype, shape);
  request.add_raw_input_contents(Bytes(values));
}

// Makes a request of two sequences of three tokens each.
inline ModelInferRequest TwoSequences() {
  ModelInferRequest request;
  request.set_model_name("tokens");
  request.set_id("7");
  AddRaw<int64_t>(request, "x", "INT64", {2, 3}, {5, 6, 7, 8, 9, 10});
  return request;
}

// Has a server, and a client of the Open Inference Protocol.
class InferTest : public testing::Test {
 protected:
  explicit InferTest(TestServerOptions options = {}) : server_(std::move(options)) {}

  grpc::Status Infer(const ModelInferRequest& request, ModelInferResponse& response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, &response);
  }

  // Infers. REQUIRES: the answer is OK.
  ModelInferResponse Infer(const ModelInferRequest& request) {
    ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  TestServer server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_ =
      inference::GRPCInferenceService::NewStub(
          grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials()));
};

}  // namespace linserve
