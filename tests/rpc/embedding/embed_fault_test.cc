#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "support/test_files.h"
#include "support/test_server.h"
#include "support/test_tensors.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Holds one sequence that cannot be computed, and what its answer must say.
struct FaultySequence {
  std::string name;
  std::string model;
  TensorMap inputs;
  std::string message;
};

void PrintTo(const FaultySequence& sequence, std::ostream* out) { *out << sequence.name; }

Tensor Zeros(DType dtype, Shape shape) { return Tensor::Allocate(dtype, std::move(shape)).first; }

std::vector<FaultySequence> FaultySequences() {
  const Tensor floats = Tensor::FromFloats({1, 3}, {1, 2, 3});
  return {
      {"NaN",
       "floats",
       {{"x", Tensor::FromFloats({2, 3}, {1, 2, 3, 4, kNaN, 6})}},
       "input 'x': it holds NaN at position [1, 1]"},
      {"Infinity",
       "floats",
       {{"x", Tensor::FromFloats({1, 3}, {1, 2, -kInfinity})}},
       "input 'x': it holds -Inf at position [0, 2]"},
      {"NaNInContext",
       "floats",
       {{"x", floats}, {"context", Tensor::FromFloats({1, 3}, {kNaN, 0, 0})}},
       "input 'context': it holds NaN at position [0, 0]"},
      {"WrongName",
       "floats",
       {{"x", floats}, {"mask", floats}},
       "input 'mask': the model has no such input, expected one of 'x', 'context'"},
      {"MissingInput",
       "floats",
       {{"context", floats}},
       "input 'x': it is missing, expected a tensor [n, 3]"},
      {"NoInput", "tokens", {}, "input 'x': it is missing"},
      {"FloatsForTokens",
       "tokens",
       {{"x", Tensor::FromFloats({2}, {1, 2})}},
       "input 'x': dtype is F32, expected U8, I8, I16, I32 or I64"},
      {"TokensForFloats",
       "floats",
       {{"x", Tensor::FromInts({1, 3}, {1, 2, 3})}},
       "input 'x': dtype is I64, expected F16, BF16, F32 or F64"},
      {"WrongRank",
       "floats",
       {{"x", Tensor::FromFloats({3}, {1, 2, 3})}},
       "input 'x': shape [3] has 1 axes, expected 2 as in [n, 3]"},
      {"WrongWidth",
       "floats",
       {{"x", Zeros(DType::kF32, {2, 4})}},
       "input 'x': shape [2, 4] has 4 along axis 1, expected 3 of [n, 3]"},
      {"NegativeToken",
       "tokens",
       {{"x", Tensor::FromInts({3}, {1, -1, 2})}},
       "input 'x': it holds -1 at position [1], expected 0 <= id < 100"},
      {"TokenPastTheVocabulary",
       "tokens",
       {{"x", Tensor::FromInts({2}, {99, 100})}},
       "input 'x': it holds 100 at position [1], expected 0 <= id < 100"},
      {"TokenPast32Bits",
       "tokens",
       {{"x", Tensor::FromInts({1}, {int64_t{1} << 40})}},
       "expected 0 <= id < 100"},
      {"EmptySequence",
       "tokens",
       {{"x", Zeros(DType::kI64, {0})}},
       "input 'x': the sequence is empty"},
      {"NoRows", "floats", {{"x", Zeros(DType::kF32, {0, 3})}}, "input 'x': the sequence is empty"},
      {"TooLong",
       "tokens",
       {{"x", Zeros(DType::kI64, {kTestLongest + 1})}},
       "input 'x': the sequence is too long: n is 20001, expected at most 20000"},
  };
}

class FaultySequenceTest : public ::testing::TestWithParam<FaultySequence> {
 protected:
  TestServer server_;
};

TEST_P(FaultySequenceTest, FailsAloneAndSaysWhatWasExpected) {
  EmbeddingClient client(server_.client_options());
  const NamedSequence good =
      GetParam().model == "tokens" ? Tokens("good", {5, 6}) : Floats("good", {1, 2, 3, 4, 5, 6});
  const auto results =
      client.Embed(CallOf(GetParam().model, {good, {"bad", GetParam().inputs}, good}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->at(1).status, IsInvalid(GetParam().message));
  EXPECT_EQ(results->at(1).id, "bad");
  EXPECT_TRUE(results->at(1).outputs.empty());
  for (const size_t neighbour : {0, 2}) {
    EXPECT_TRUE(results->at(neighbour).status.ok()) << results->at(neighbour).status;
    EXPECT_EQ(results->at(neighbour).outputs.at("y").shape()[0], 2);
  }
  EXPECT_TRUE(Serves(server_));
  EXPECT_TRUE(server_.WaitFor(InFlight(), 0));
}

INSTANTIATE_TEST_SUITE_P(All, FaultySequenceTest, ::testing::ValuesIn(FaultySequences()),
                         [](const auto& fault) { return fault.param.name; });

// Sends what the client library would never send.
class FaultyMessageTest : public ::testing::Test {
 protected:
  // Returns the only answer to a request of one sequence.
  absl::Status Answer(const std::string& model, const v1::Sequence& sequence) {
    v1::EmbedRequest request;
    request.set_model(model);
    *request.add_sequences() = sequence;
    grpc::ClientContext context;
    v1::EmbedResponse response;
    const auto stub = server_.NewStub();
    auto reader = stub->Embed(&context, request);
    EXPECT_TRUE(reader->Read(&response));
    EXPECT_TRUE(response.last());
    EXPECT_FALSE(response.request_failed());
    v1::EmbedResponse more;
    EXPECT_FALSE(reader->Read(&more));
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(Serves(server_));
    return {static_cast<absl::StatusCode>(response.code()), response.message()};
  }

  static v1::Tensor Wire(v1::DataType dtype, const std::vector<int64_t>& shape, size_t bytes) {
    v1::Tensor tensor;
    tensor.set_dtype(dtype);
    for (int64_t size : shape) tensor.add_shape(size);
    tensor.set_data(std::string(bytes, '\0'));
    return tensor;
  }

  TestServer server_;
};

TEST_F(FaultyMessageTest, TooFewOrTooManyBytesAreRefused) {
  v1::Sequence sequence;
  *sequence.mutable_x() = Wire(v1::DATA_TYPE_F32, {2, 3}, 23);
  EXPECT_THAT(Answer("floats", sequence),
              IsInvalid("input 'x': 23 bytes of data, expected 24 for F32 of shape [2, 3]"));
  *sequence.mutable_x() = Wire(v1::DATA_TYPE_F32, {2, 3}, 28);
  EXPECT_THAT(Answer("floats", sequence), IsInvalid("28 bytes of data, expected 24"));
}

TEST_F(FaultyMessageTest, ImpossibleShapesAreRefused) {
  v1::Sequence sequence;
  *sequence.mutable_x() = Wire(v1::DATA_TYPE_F32, {-1, 3}, 12);
  EXPECT_THAT(Answer("floats", sequence), IsInvalid("expected an impossible number"));
  *sequence.mutable_x() = Wire(v1::DATA_TYPE_F32, {int64_t{1} << 62, 3}, 12);
  EXPECT_THAT(Answer("floats", sequence), IsInvalid("expected an impossible number"));
}

TEST_F(FaultyMessageTest, UnknownDTypesAreRefused) {
  v1::Sequence sequence;
  *sequence.mutable_x() = Wire(v1::DATA_TYPE_UNSPECIFIED, {1, 3}, 12);
  EXPECT_THAT(Answer("floats", sequence), IsInvalid("input 'x': dtype 0 is none of"));
  sequence.mutable_x()->set_dtype(static_cast<v1::DataType>(77));
  EXPECT_THAT(Answer("floats", sequence), IsInvalid("input 'x': dtype 77 is none of"));
}

TEST_F(FaultyMessageTest, OneInputInTwoFormsIsRefused) {
  v1::Sequence sequence;
  sequence.add_token_ids(1);
  *sequence.mutable_x() = Wire(v1::DATA_TYPE_I64, {1}, 8);
  EXPECT_THAT(Answer("tokens", sequence), IsInvalid("input 'x' is given more than once"));
}

// Expects that faults of a request as a whole end the call.
class FaultyRequestTest : public ::testing::Test {
 protected:
  absl::Status Embed(EmbedCall call) {
    EmbeddingClient client(server_.client_options());
    absl::Status status = client.Embed(call).status();
    EXPECT_TRUE(Serves(server_));
    EXPECT_TRUE(server_.WaitFor(InFlight(), 0));
    return status;
  }

  TestServer server_{{.grpc = {.limits = {.max_sequences_per_request = 3}}}};
};

TEST_F(FaultyRequestTest, AnUnknownModelIsNotFoundAndTheKnownOnesAreListed) {
  const absl::Status status = Embed(CallOf("tolkiens", {Tokens("a", {1})}));
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kNotFound, "model 'tolkiens' is not found"));
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kNotFound, "tokens version 2"));
}

TEST_F(FaultyRequestTest, AnUnknownVersionIsNotFound) {
  EmbedCall call = CallOf("tokens", {Tokens("a", {1})});
  call.version = 3;
  EXPECT_THAT(Embed(call),
              IsStatus(absl::StatusCode::kNotFound, "model 'tokens' version 3 is not found"));
}

TEST_F(FaultyRequestTest, AModelThatIsStillLoadingIsUnavailable) {
  EXPECT_THAT(Embed(CallOf("late", {Tokens("a", {1})})),
              IsStatus(absl::StatusCode::kUnavailable, "is loading"));
}

TEST_F(FaultyRequestTest, SeveralModelsDemandAName) {
  EXPECT_THAT(Embed(CallOf("", {Tokens("a", {1})})), IsInvalid("; name one in the field 'model'"));
}

TEST_F(FaultyRequestTest, NoSequencesAreRefused) {
  EXPECT_THAT(Embed(CallOf("tokens", {})), IsInvalid("the request holds no sequences"));
}

TEST_F(FaultyRequestTest, TooManySequencesAreRefusedByTheLimitsName) {
  const NamedSequence one = Tokens("a", {1});
  EXPECT_THAT(Embed(CallOf("tokens", {one, one, one, one})),
              IsInvalid("field EmbedRequest.sequences holds more than 3 entries "
                        "(max_sequences_per_request)"));
  EXPECT_TRUE(Embed(CallOf("tokens", {one, one, one})).ok());
}

TEST_F(FaultyRequestTest, ARefusedRequestCountsOnce) {
  EXPECT_FALSE(Embed(CallOf("tokens", {})).ok());
  EXPECT_EQ(server_.Scrape()[R"(linserve_rejected_total{model="tokens",reason="invalid",)"
                             R"(version="2"})"],
            1);
}

TEST_F(FaultyRequestTest, UnknownEnumeratorsInTheOptionsAreRefused) {
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  request.mutable_options()->set_pooling(static_cast<v1::Pooling>(9));
  grpc::ClientContext context;
  v1::EmbedResponse response;
  const auto stub = server_.NewStub();
  auto reader = stub->Embed(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("options.pooling is 9"));
}

TEST_F(FaultyRequestTest, MoreOutputsThanTheModelHasAreRefusedBeforeAnySequenceIsRead) {
  EmbedCall call = CallOf("tokens", {Tokens("", {}), Tokens("", {})});
  call.options.outputs.assign(60, "y");
  EmbeddingClient client(server_.client_options());
  EXPECT_THAT(client.Embed(call), IsInvalid("60 outputs are asked for, expected each once of "
                                            "'y', 'z'"));
}

TEST_F(FaultyRequestTest, AnUnknownOutputIsRefusedForEachSequence) {
  EmbedCall call = CallOf("tokens", {Tokens("a", {1})});
  call.options.outputs = {"w"};
  EmbeddingClient client(server_.client_options());
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->at(0).status,
              IsInvalid("output 'w': the model has no such output, expected one of 'y', 'z'"));
}

}  // namespace
}  // namespace linserve
