#include <grpcpp/grpcpp.h>

#include <cstring>
#include <functional>

#include "inference/grpc_service.grpc.pb.h"
#include "rpc/test_server.h"

namespace linserve {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Input = ModelInferRequest::InferInputTensor;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Input& AddInput(ModelInferRequest& request, const std::string& name, const std::string& datatype,
                const Shape& shape) {
  Input& input = *request.add_inputs();
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

// Two sequences of three tokens each.
ModelInferRequest TwoSequences() {
  ModelInferRequest request;
  request.set_model_name("tokens");
  request.set_id("7");
  AddRaw<int64_t>(request, "x", "INT64", {2, 3}, {5, 6, 7, 8, 9, 10});
  return request;
}

std::vector<float> Together(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class InferTest : public testing::Test {
 protected:
  grpc::Status Infer(const ModelInferRequest& request, ModelInferResponse& response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, &response);
  }

  // REQUIRES: it is OK.
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

TEST_F(InferTest, AnswersAWholeBatchInTheOrderOfItsSequences) {
  const ModelInferResponse response = Infer(TwoSequences());
  EXPECT_EQ(response.model_name(), "tokens");
  EXPECT_EQ(response.model_version(), "2");
  EXPECT_EQ(response.id(), "7");
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "y");
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 4));
  EXPECT_EQ(ValuesOf<float>(response.raw_output_contents(0)),
            Together(ExpectedRows({5, 6, 7}), ExpectedRows({8, 9, 10})));
}

TEST_F(InferTest, TakesTheVersionThatIsNamed) {
  ModelInferRequest request = TwoSequences();
  request.set_model_version("1");
  EXPECT_EQ(Infer(request).model_version(), "1");
}

TEST_F(InferTest, TakesTokensOfEveryIntegerTypeRawAndTyped) {
  const std::vector<std::function<void(ModelInferRequest&)>> forms = {
      [](auto& r) {
        AddRaw<uint8_t>(r, "x", "UINT8", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        AddRaw<int8_t>(r, "x", "INT8", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        AddRaw<uint16_t>(r, "x", "UINT16", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        AddRaw<int16_t>(r, "x", "INT16", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        AddRaw<uint32_t>(r, "x", "UINT32", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        AddRaw<int32_t>(r, "x", "INT32", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        AddRaw<uint64_t>(r, "x", "UINT64", {1, 3}, {5, 6, 7});
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "INT8", {1, 3}).mutable_contents();
        for (const int id : {5, 6, 7}) contents.add_int_contents(id);
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "INT16", {1, 3}).mutable_contents();
        for (const int id : {5, 6, 7}) contents.add_int_contents(id);
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "INT32", {1, 3}).mutable_contents();
        for (const int id : {5, 6, 7}) contents.add_int_contents(id);
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "INT64", {1, 3}).mutable_contents();
        for (const int id : {5, 6, 7}) contents.add_int64_contents(id);
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "UINT8", {1, 3}).mutable_contents();
        for (const unsigned id : {5U, 6U, 7U}) contents.add_uint_contents(id);
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "UINT16", {1, 3}).mutable_contents();
        for (const unsigned id : {5U, 6U, 7U}) contents.add_uint_contents(id);
      },
      [](auto& r) {
        auto& contents = *AddInput(r, "x", "UINT64", {1, 3}).mutable_contents();
        for (const unsigned id : {5U, 6U, 7U}) contents.add_uint64_contents(id);
      }};
  for (const auto& add : forms) {
    ModelInferRequest request;
    request.set_model_name("tokens");
    add(request);
    const ModelInferResponse response = Infer(request);
    ASSERT_EQ(response.raw_output_contents_size(), 1) << request.ShortDebugString();
    EXPECT_EQ(ValuesOf<float>(response.raw_output_contents(0)), ExpectedRows({5, 6, 7}));
  }
}

TEST_F(InferTest, TakesFloatsOfEveryTypeThatHasATypedField) {
  for (const bool twice : {false, true}) {
    ModelInferRequest request;
    request.set_model_name("floats");
    auto& contents = *AddInput(request, "x", twice ? "FP64" : "FP32", {1, 1, 3}).mutable_contents();
    for (const float value : {1.0F, 2.5F, -3.0F}) {
      twice ? contents.add_fp64_contents(value) : contents.add_fp32_contents(value);
    }
    EXPECT_THAT(ValuesOf<float>(Infer(request).raw_output_contents(0)), ElementsAre(1, 2.5, -3));
  }
}

TEST_F(InferTest, CropsSequencesToTheirLengthsAndGivesZerosBeyond) {
  for (const Shape& shape : {Shape{2}, Shape{2, 1}}) {
    ModelInferRequest request;
    request.set_model_name("tokens");
    AddRaw<int64_t>(request, "x", "INT64", {2, 3}, {5, 6, 7, 8, 99, 99});
    AddRaw<int32_t>(request, "lengths", "INT32", shape, {3, 1});
    const ModelInferResponse response = Infer(request);
    EXPECT_EQ(ValuesOf<float>(response.raw_output_contents(0)),
              Together(Together(ExpectedRows({5, 6, 7}), ExpectedRows({8})),
                       std::vector<float>(8, 0.0F)));
  }
}

TEST_F(InferTest, PoolsToOneVectorASequenceWhateverTheLengths) {
  ModelInferRequest request;
  request.set_model_name("tokens");
  AddRaw<int64_t>(request, "x", "INT64", {2, 9}, std::vector<int64_t>(18, 4));
  AddRaw<int64_t>(request, "lengths", "INT64", {2}, {9, 2});
  (*request.mutable_parameters())["pooling"].set_string_param("cls");
  (*request.mutable_parameters())["of_the_caller"].set_double_param(1);
  const ModelInferResponse response = Infer(request);
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 4));
  EXPECT_EQ(ValuesOf<float>(response.raw_output_contents(0)), Together({4, 0, 9, 1}, {4, 0, 2, 1}));
}

TEST_F(InferTest, GivesTheOutputsThatAreAskedForInTheirOrder) {
  ModelInferRequest request = TwoSequences();
  request.add_outputs()->set_name("z");
  request.add_outputs()->set_name("y");
  const ModelInferResponse response = Infer(request);
  ASSERT_EQ(response.outputs_size(), 2);
  EXPECT_EQ(response.outputs(0).name(), "z");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 2));
  EXPECT_EQ(response.outputs(1).name(), "y");
  EXPECT_EQ(response.raw_output_contents(1).size(), 2U * 3 * 4 * 4);
}

TEST_F(InferTest, GivesTheDatatypeThatIsAskedFor) {
  ModelInferRequest request = TwoSequences();
  (*request.mutable_parameters())["dtype"].set_string_param("FP16");
  const ModelInferResponse response = Infer(request);
  EXPECT_EQ(response.outputs(0).datatype(), "FP16");
  EXPECT_EQ(response.raw_output_contents(0).size(), 2U * 3 * 4 * 2);
}

struct Fault {
  std::string what;
  std::function<void(ModelInferRequest&)> make;
  grpc::StatusCode code;
  std::vector<std::string> words;
};

const std::vector<Fault>& Faults() {
  using grpc::StatusCode;
  static const std::vector<Fault> faults = {
      {"model",
       [](auto& r) { r.set_model_name("no"); },
       StatusCode::NOT_FOUND,
       {"[request id: 7] Request for unknown model: 'no' is not found"}},
      {"no id",
       [](auto& r) { r.set_model_name("no"), r.clear_id(); },
       StatusCode::NOT_FOUND,
       {"[request id: <id_unknown>] "}},
      {"version",
       [](auto& r) { r.set_model_version("9"); },
       StatusCode::NOT_FOUND,
       {"Request for unknown model: 'tokens' version 9 is not found"}},
      {"version text",
       [](auto& r) { r.set_model_version("v1"); },
       StatusCode::INVALID_ARGUMENT,
       {"version", "'v1'"}},
      {"loading", [](auto& r) { r.set_model_name("late"); }, StatusCode::UNAVAILABLE, {"late"}},
      {"missing",
       [](auto& r) { r.clear_inputs(), r.clear_raw_input_contents(); },
       StatusCode::INVALID_ARGUMENT,
       {"expected 1 inputs but got 0 inputs for model 'tokens'. Got input(s) [], but missing "
        "required input(s) ['x']. Please provide all required input(s)."}},
      {"extra",
       [](auto& r) {
         AddRaw<float>(r, "w", "FP32", {2, 1}, {1, 1});
       },
       StatusCode::INVALID_ARGUMENT,
       {"expected 1 inputs but got 2 inputs for model 'tokens'", "['w','x']"}},
      {"twice",
       [](auto& r) {
         AddRaw<int64_t>(r, "x", "INT64", {1, 1}, {1});
       },
       StatusCode::INVALID_ARGUMENT,
       {"'x'", "more than once"}},
      {"datatype",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("FP64"); },
       StatusCode::INVALID_ARGUMENT,
       {"inference input 'x' data-type is 'FP64', but model 'tokens' expects 'INT64'"}},
      {"no datatype",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("int"); },
       StatusCode::INVALID_ARGUMENT,
       {"'int'", "INT64"}},
      {"bytes",
       [](auto& r) { r.mutable_inputs(0)->set_shape(1, 4); },
       StatusCode::INVALID_ARGUMENT,
       {"input byte size mismatch for input 'x' for model 'tokens'. Expected 64, got 48"}},
      {"negative",
       [](auto& r) { r.mutable_inputs(0)->set_shape(1, -3); },
       StatusCode::INVALID_ARGUMENT,
       {"byte size mismatch"}},
      {"overflow",
       [](auto& r) { r.mutable_inputs(0)->set_shape(1, int64_t{1} << 60); },
       StatusCode::INVALID_ARGUMENT,
       {"byte size mismatch"}},
      {"raw entries",
       [](auto& r) { r.add_raw_input_contents("1"); },
       StatusCode::INVALID_ARGUMENT,
       {"got 2 for 1 inputs"}},
      {"no data",
       [](auto& r) { r.clear_raw_input_contents(); },
       StatusCode::INVALID_ARGUMENT,
       {"unable to find data for input tensor 'x' for model 'tokens' in request."}},
      {"both",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_int64_contents(1); },
       StatusCode::INVALID_ARGUMENT,
       {"contents field must not be specified when using raw_input_contents for 'x' for model "
        "'tokens'"}},
      {"elements",
       [](auto& r) {
         r.clear_raw_input_contents();
         r.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);
       },
       StatusCode::INVALID_ARGUMENT,
       {"input element size mismatch", "Expected 6, got 1"}},
      {"typed half",
       [](auto& r) {
         r.clear_raw_input_contents();
         r.mutable_inputs(0)->set_datatype("FP16");
         r.mutable_inputs(0)->mutable_contents();
       },
       StatusCode::INVALID_ARGUMENT,
       {"raw_input_contents"}},
      {"huge",
       [](auto& r) {
         r.mutable_inputs(0)->set_datatype("UINT64");
         r.set_raw_input_contents(0, Bytes<uint64_t>({1, 2, 3, 4, 5, ~uint64_t{0}}));
       },
       StatusCode::INVALID_ARGUMENT,
       {"does not fit"}},
      {"token",
       [](auto& r) {
         r.set_raw_input_contents(0, Bytes<int64_t>({1, 2, 3, 4, 100, 5}));
       },
       StatusCode::INVALID_ARGUMENT,
       {"sequence 1 of the batch", "100"}},
      {"empty",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, 0);
         r.set_raw_input_contents(0, "");
       },
       StatusCode::INVALID_ARGUMENT,
       {"no sequences"}},
      {"lengths",
       [](auto& r) {
         AddRaw<int64_t>(r, "lengths", "INT64", {2}, {3, 4});
       },
       StatusCode::INVALID_ARGUMENT,
       {"lengths", "sequence 1 has 4, expected 1 to 3"}},
      {"output",
       [](auto& r) { r.add_outputs()->set_name("w"); },
       StatusCode::INVALID_ARGUMENT,
       {"'w'"}},
      {"pooling",
       [](auto& r) { (*r.mutable_parameters())["pooling"].set_string_param("sum"); },
       StatusCode::INVALID_ARGUMENT,
       {"'pooling'", "'mean'"}},
      {"normalize",
       [](auto& r) { (*r.mutable_parameters())["normalize"].set_int64_param(1); },
       StatusCode::INVALID_ARGUMENT,
       {"'normalize'", "bool"}},
      {"dtype",
       [](auto& r) { (*r.mutable_parameters())["dtype"].set_string_param("INT8"); },
       StatusCode::INVALID_ARGUMENT,
       {"'dtype'", "'FP16'"}},
      {"timeout",
       [](auto& r) { (*r.mutable_parameters())["timeout"].set_int64_param(-1); },
       StatusCode::INVALID_ARGUMENT,
       {"'timeout'", "microseconds"}},
      {"session",
       [](auto& r) { (*r.mutable_parameters())["sequence_id"].set_int64_param(3); },
       StatusCode::UNIMPLEMENTED,
       {"'sequence_id'"}},
      {"classes",
       [](auto& r) {
         auto& output = *r.add_outputs();
         output.set_name("y");
         (*output.mutable_parameters())["classification"].set_int64_param(3);
       },
       StatusCode::UNIMPLEMENTED,
       {"classification", "'y'"}},
      {"shared input",
       [](auto& r) {
         auto& parameters = *r.mutable_inputs(0)->mutable_parameters();
         parameters["shared_memory_region"].set_string_param("a");
       },
       StatusCode::UNIMPLEMENTED,
       {"shared memory", "'x'"}},
      {"shared output",
       [](auto& r) {
         auto& output = *r.add_outputs();
         output.set_name("y");
         (*output.mutable_parameters())["shared_memory_region"].set_string_param("a");
       },
       StatusCode::UNIMPLEMENTED,
       {"shared memory", "'y'"}}};
  return faults;
}

TEST_F(InferTest, SaysWhatIsWrongWithARequestInTheWordsThatUsersKnow) {
  for (const Fault& fault : Faults()) {
    ModelInferRequest request = TwoSequences();
    fault.make(request);
    ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_EQ(status.error_code(), fault.code) << fault.what << ": " << status.error_message();
    for (const std::string& word : fault.words) {
      EXPECT_THAT(status.error_message(), HasSubstr(word)) << fault.what;
    }
  }
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelInfer"), 0));
  EXPECT_EQ(Infer(TwoSequences()).outputs_size(), 1);
}

TEST_F(InferTest, EndsAtTheTimeoutThatIsAskedFor) {
  constexpr std::chrono::milliseconds kTimeout(2);
  server_.tokens().Block();
  std::thread first([&] { Infer(TwoSequences()); });
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  std::thread second([&] {
    ModelInferRequest request = TwoSequences();
    (*request.mutable_parameters())["timeout"].set_int64_param(
        std::chrono::microseconds(kTimeout).count());
    ModelInferResponse response;
    EXPECT_EQ(Infer(request, response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  });
  EXPECT_TRUE(server_.WaitFor(OfTokens("linserve_queue_sequences"), 2));
  std::this_thread::sleep_for(kTimeout);
  server_.tokens().Release();
  first.join();
  second.join();
}

TEST_F(InferTest, OfACallerWhoHasLeftIsNotComputed) {
  server_.tokens().Block();
  std::thread first([&] { Infer(TwoSequences()); });
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  grpc::ClientContext context;
  std::thread second([&] {
    ModelInferResponse response;
    EXPECT_EQ(stub_->ModelInfer(&context, TwoSequences(), &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(server_.WaitFor(OfTokens("linserve_queue_sequences"), 2));
  context.TryCancel();
  second.join();
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelInfer"), 2));
  server_.tokens().Release();
  first.join();
  EXPECT_TRUE(server_.WaitFor(Abandoned("queue"), 2));
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelInfer"), 0));
}

TEST_F(InferTest, WhileDrainingIsUnavailable) {
  server_.repository().Drain(std::chrono::steady_clock::now());
  ModelInferResponse response;
  EXPECT_EQ(Infer(TwoSequences(), response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(InferTest, TellsWhatTheServerAndItsModelsAre) {
  {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    ASSERT_TRUE(stub_->ServerLive(&context, {}, &response).ok());
    EXPECT_TRUE(response.live());
  }
  for (const bool serving : {true, false}) {
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
