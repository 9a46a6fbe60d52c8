#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> Together(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

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

TEST_F(InferTest, TakesLargeBatches) {
  constexpr int64_t kBatch = 6;
  constexpr int64_t kLength = 7001;
  std::vector<float> x(static_cast<size_t>(kBatch * kLength * 3));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  ModelInferRequest request;
  request.set_model_name("floats");
  AddRaw<float>(request, "x", "FP32", {kBatch, kLength, 3}, x);
  EXPECT_EQ(ValuesOf<float>(Infer(request).raw_output_contents(0)), x);
  request.mutable_raw_input_contents(0)->pop_back();
  ModelInferResponse response;
  EXPECT_THAT(Infer(request, response).error_message(),
              testing::HasSubstr("Expected 504072, got 504071"));
  x[123457] = std::numeric_limits<float>::infinity();
  request.set_raw_input_contents(0, Bytes(x));
  EXPECT_THAT(Infer(request, response).error_message(),
              testing::HasSubstr("it holds Inf at position [6147, 1]"));
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

TEST_F(InferTest, EndsAtTheTimeoutThatIsAskedForWhateverIsBeingComputed) {
  server_.tokens().Hold();
  std::thread first([&] { Infer(TwoSequences()); });
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  ModelInferRequest request = TwoSequences();
  (*request.mutable_parameters())["timeout"].set_int64_param(20000);  // microseconds
  ModelInferResponse response;
  EXPECT_EQ(Infer(request, response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(server_.WaitFor(OfTokens("linserve_queue_sequences"), 0));
  server_.tokens().LetGo();
  first.join();
}

class InferWithAFullQueueTest : public InferTest {
 protected:
  InferWithAFullQueueTest() : InferTest({.limits = {.max_sequences = 2}}) {}
};

TEST_F(InferWithAFullQueueTest, OfACallerWhoHasLeftMakesRoomAndIsNotComputed) {
  server_.tokens().Hold();
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
  std::thread third([&] {
    ModelInferResponse response;
    grpc::Status status;
    // The server is told of the cancellation in its own time.
    do {
      status = Infer(TwoSequences(), response);
    } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  EXPECT_TRUE(server_.WaitFor(Abandoned("queue"), 2));
  server_.tokens().LetGo();
  first.join();
  third.join();
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelInfer"), 0));
  EXPECT_EQ(server_.tokens().computed(), 4);
}

TEST_F(InferTest, WhileDrainingIsUnavailable) {
  server_.repository().Drain(std::chrono::steady_clock::now());
  ModelInferResponse response;
  EXPECT_EQ(Infer(TwoSequences(), response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace linserve
