#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>

#include "inference/grpc_service.pb.h"
#include "rpc/raw_call.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::EmbedRequest OneEmbed() {
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  return request;
}

v1::GenerateRequest OneGenerate() {
  v1::GenerateRequest request;
  request.set_model("tokens");
  request.add_token_ids(1);
  return request;
}

inference::ModelInferRequest OneInfer() {
  inference::ModelInferRequest request;
  request.set_model_name("tokens");
  auto& x = *request.add_inputs();
  x.set_name("x");
  x.set_datatype("UINT8");
  x.add_shape(1);
  x.add_shape(3);
  request.add_raw_input_contents("\1\2\3");
  return request;
}

template <typename Request, typename Make>
std::string With(Request request, const Make& make) {
  make(request);
  return request.SerializeAsString();
}

class BoundsTest : public testing::Test {
 protected:
  // Expects that a call is refused, before anything of it is computed, with these words.
  void ExpectRefused(const char* method, const std::string& wire, grpc::StatusCode code,
                     const std::string& words) {
    const grpc::Status status = RawCall(server_, method, wire).Finish();
    EXPECT_EQ(status.error_code(), code) << words << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(words));
    EXPECT_LE(status.error_message().size(), 1024U);
    EXPECT_EQ(server_.tokens().computed(), 0);
    EXPECT_TRUE(server_.WaitFor("linserve_inflight_bytes", 0));
  }

  TestServer server_{
      {.grpc = {.inflight = {.max_bytes = 8 << 20, .max_bytes_per_caller = 8 << 20}}}};
};

TEST_F(BoundsTest, HoldForIdsInEveryProtocol) {
  for (const size_t length : {size_t{129}, size_t{20'000}, size_t{1'000'000}}) {
    const std::string id(length, 'a');
    const std::string words = "it has " + std::to_string(length) + " bytes, expected at most 128";
    ExpectRefused(kEmbedRpc, With(OneEmbed(), [&](auto& r) { r.set_request_id(id); }),
                  grpc::StatusCode::INVALID_ARGUMENT, words);
    ExpectRefused(kEmbedRpc, With(OneEmbed(), [&](auto& r) { r.set_model(id); }),
                  grpc::StatusCode::INVALID_ARGUMENT, words);
    ExpectRefused(kEmbedRpc, With(OneEmbed(), [&](auto& r) { r.mutable_sequences(0)->set_id(id); }),
                  grpc::StatusCode::INVALID_ARGUMENT, words);
    ExpectRefused(
        kEmbedRpc,
        With(OneEmbed(), [&](auto& r) { r.mutable_sequences(0)->mutable_session()->set_id(id); }),
        grpc::StatusCode::INVALID_ARGUMENT, words);
    ExpectRefused(kGenerateRpc, With(OneGenerate(), [&](auto& r) { r.set_request_id(id); }),
                  grpc::StatusCode::INVALID_ARGUMENT, words);
    ExpectRefused(kInferRpc, With(OneInfer(), [&](auto& r) { r.set_id(id); }),
                  grpc::StatusCode::INVALID_ARGUMENT, words);
    ExpectRefused(kInferRpc, With(OneInfer(), [&](auto& r) { r.set_model_version(id); }),
                  grpc::StatusCode::INVALID_ARGUMENT, words);
  }
  ExpectRefused(
      kInferRpc,
      With(OneInfer(),
           [&](auto& r) {
             (*r.mutable_parameters())["sequence_id"].set_string_param(std::string(129, 'a'));
           }),
      grpc::StatusCode::INVALID_ARGUMENT, "the id of a session has 129 bytes");
}

TEST_F(BoundsTest, LetIdsPassThatAreAsLongAsTheyMayBe) {
  const std::string id(128, 'a');
  const auto stub = server_.NewStub();
  v1::EmbedRequest request = OneEmbed();
  request.set_request_id(id);
  request.mutable_sequences(0)->set_id(id);
  grpc::ClientContext context;
  v1::EmbedResponse response;
  const auto reader = stub->Embed(&context, request);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.request_id(), id);
  EXPECT_EQ(response.sequence_id(), id);
  EXPECT_EQ(response.code(), 0) << response.message();
}

TEST_F(BoundsTest, HoldForListsThatACallerChooses) {
  std::string sequences;
  for (int i = 0; i < 2'000'000; ++i) sequences += std::string("\x7a\0", 2);  // field 15, empty
  ExpectRefused(kEmbedRpc, sequences, grpc::StatusCode::INVALID_ARGUMENT,
                "max_sequences_per_request");
  ExpectRefused(kInferRpc,
                With(OneInfer(),
                     [](auto& r) {
                       for (int i = 0; i < 20'000; ++i) r.add_outputs()->set_name("y");
                     }),
                grpc::StatusCode::INVALID_ARGUMENT, "ModelInferRequest.outputs holds more than 64");
  ExpectRefused(kInferRpc,
                With(OneInfer(),
                     [](auto& r) {
                       for (int i = 0; i < 2'000; ++i) r.add_inputs()->set_name("x");
                     }),
                grpc::StatusCode::INVALID_ARGUMENT, "ModelInferRequest.inputs holds more than 64");
  ExpectRefused(kGenerateRpc,
                With(OneGenerate(),
                     [](auto& r) { r.mutable_options()->mutable_stop_tokens()->Resize(1025, 1); }),
                grpc::StatusCode::INVALID_ARGUMENT, "stop_tokens holds more than 1024");
}

// Each of these is a few bytes or a few of its like, and says that there is much.
TEST_F(BoundsTest, HoldForCountsThatACallerClaims) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{int64_t{1} << 62, 0},
                                            {kMost, 0},
                                            {kMost, kMost, 0},
                                            {0, kMost},
                                            {kMost},
                                            {-1, 0},
                                            {kMost, 2, 0}}) {
    const auto claim = [&](auto& tensor) {
      tensor.mutable_shape()->Assign(shape.begin(), shape.end());
    };
    ExpectRefused(kInferRpc,
                  With(OneInfer(),
                       [&](auto& r) {
                         claim(*r.mutable_inputs(0));
                         r.set_raw_input_contents(0, "");
                       }),
                  grpc::StatusCode::INVALID_ARGUMENT, "");
  }
  ExpectRefused(kInferRpc,
                With(OneInfer(),
                     [](auto& r) {
                       r.mutable_inputs(0)->set_shape(0, 20'000);
                       r.mutable_inputs(0)->set_shape(1, 1);
                       r.set_raw_input_contents(0, std::string(20'000, '\1'));
                     }),
                grpc::StatusCode::INVALID_ARGUMENT, "batch-size must be <= 16384");
  ExpectRefused(kInferRpc,
                With(OneInfer(),
                     [](auto& r) {
                       r.mutable_inputs(0)->set_name("text");
                       r.mutable_inputs(0)->set_datatype("BYTES");
                       r.mutable_inputs(0)->clear_shape();
                       r.mutable_inputs(0)->add_shape(1'000'000);
                       r.set_raw_input_contents(0, std::string(4'000'000, '\0'));
                     }),
                grpc::StatusCode::INVALID_ARGUMENT, "batch-size must be <= 16384");
}

TEST_F(BoundsTest, CountWhatAMessageTakesOnceItIsDecoded) {
  ExpectRefused(
      kEmbedRpc,
      With(OneEmbed(),
           [](auto& r) { r.mutable_sequences(0)->mutable_token_ids()->Resize(1'000'000, 1); }),
      grpc::StatusCode::RESOURCE_EXHAUSTED, "max_inflight_bytes = 8388608");
  ExpectRefused(kGenerateRpc,
                With(OneGenerate(), [](auto& r) { r.mutable_token_ids()->Resize(1'000'000, 1); }),
                grpc::StatusCode::RESOURCE_EXHAUSTED, "max_inflight_bytes = 8388608");
  ExpectRefused(kInferRpc,
                With(OneInfer(),
                     [](auto& r) {
                       r.clear_raw_input_contents();
                       r.mutable_inputs(0)->mutable_contents()->mutable_bool_contents()->Resize(
                           2'000'000, true);
                     }),
                grpc::StatusCode::RESOURCE_EXHAUSTED, "max_inflight_bytes = 8388608");
  std::string unknown;
  for (int i = 0; i < 100'000; ++i) unknown += "\xa0\x06\x01";  // field 100, which nobody knows
  ExpectRefused(kEmbedRpc, OneEmbed().SerializeAsString() + unknown,
                grpc::StatusCode::RESOURCE_EXHAUSTED, "max_inflight_bytes = 8388608");
  // Elements of two bytes become some of eight.
  ExpectRefused(kInferRpc,
                With(OneInfer(),
                     [](auto& r) {
                       r.mutable_inputs(0)->set_datatype("UINT16");
                       r.mutable_inputs(0)->set_shape(1, 1'500'000);
                       r.set_raw_input_contents(0, std::string(3'000'000, '\0'));
                     }),
                grpc::StatusCode::RESOURCE_EXHAUSTED, "max_inflight_bytes = 8388608");
}

TEST_F(BoundsTest, HoldForQuestions) {
  inference::ModelReadyRequest question;
  question.set_name(std::string(129, 'a'));
  ExpectRefused("/inference.GRPCInferenceService/ModelReady", question.SerializeAsString(),
                grpc::StatusCode::INVALID_ARGUMENT, "ModelReadyRequest.name: it has 129 bytes");
  question.set_name(std::string(1'000'000, 'a'));
  for (const char* method :
       {"/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ServerReady",
        "/inference.GRPCInferenceService/ModelReady",
        "/inference.GRPCInferenceService/ServerMetadata",
        "/inference.GRPCInferenceService/ModelMetadata",
        "/inference.GRPCInferenceService/ModelConfig",
        "/inference.GRPCInferenceService/ModelStatistics",
        "/inference.GRPCInferenceService/RepositoryIndex",
        "/inference.GRPCInferenceService/RepositoryModelLoad",
        "/inference.GRPCInferenceService/RepositoryModelUnload",
        "/linserve.v1.EmbeddingService/ListModels", "/linserve.v1.EmbeddingService/GetModel"}) {
    ExpectRefused(method, question.SerializeAsString(), grpc::StatusCode::INVALID_ARGUMENT,
                  "expected at most 65536");
  }
}

// Sequences of one token are padded to a length that only one of them has.
TEST(Bounds, HoldForWhatPaddingMakesOfAnAnswer) {
  constexpr int64_t kSequences = 100;
  constexpr int64_t kLongest = 10'000;
  TestServer server({.grpc = {.limits = {.max_message_bytes = 2 << 20}}});
  inference::ModelInferRequest request = OneInfer();
  request.mutable_inputs(0)->set_shape(0, kSequences);
  request.mutable_inputs(0)->set_shape(1, kLongest);
  request.set_raw_input_contents(0, std::string(kSequences * kLongest, '\1'));
  auto& lengths = *request.add_inputs();
  lengths.set_name("lengths");
  lengths.set_datatype("UINT8");
  lengths.add_shape(kSequences);
  request.add_raw_input_contents(std::string(kSequences, '\1'));
  const grpc::Status status = RawCall(server, kInferRpc, request.SerializeAsString()).Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("the answer has 16000000 bytes"));
}

}  // namespace
}  // namespace linserve
