#include "client/library/infer_wire.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

// Uses linserve's own client as one of the Open Inference Protocol.
class OipClientTest : public ::testing::Test {
 protected:
  ClientOptions Options() const {
    ClientOptions options = server_.client_options();
    options.protocol = Protocol::kOip;
    return options;
  }

  TestServer server_;
  EmbeddingClient client_{Options()};
};

TEST_F(OipClientTest, EmbedsARaggedBatch) {
  const auto results = client_.Embed(CallOf("tokens", {Tokens("a", {5, 6, 7}), Tokens("b", {8})}));
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2U);
  EXPECT_EQ((*results)[0].id, "a");
  EXPECT_EQ(Values((*results)[0].outputs.at("y")), ExpectedRows({5, 6, 7}));
  EXPECT_EQ((*results)[1].tokens, 1);
  EXPECT_EQ(Values((*results)[1].outputs.at("y")), ExpectedRows({8}));
  // A request is counted when it ends, which may be after its answer has come.
  EXPECT_TRUE(
      server_.WaitFor(R"(linserve_requests_total{code="OK",model="tokens",rpc="ModelInfer"})", 1));
}

TEST_F(OipClientTest, GetsWhatItAsksFor) {
  EmbedCall call = CallOf("tokens", {Tokens("a", {7, 7})});
  call.version = 1;
  call.options.pooling = Pooling::kLast;
  call.options.normalize = true;
  call.options.dtype = DType::kF16;
  call.options.outputs = {"z"};
  const auto results = client_.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  const Tensor& z = (*results)[0].outputs.at("z");
  EXPECT_EQ(z.dtype(), DType::kF16);
  EXPECT_THAT(z.shape(), ElementsAre(2));
}

TEST_F(OipClientTest, RefusesToPadSeveralInputs) {
  NamedSequence first = Floats("a", {1, 2, 3});
  first.inputs["context"] = first.inputs.at("x");
  NamedSequence second = Floats("b", {1, 2, 3, 4, 5, 6});
  second.inputs["context"] = first.inputs.at("x");
  EXPECT_THAT(client_.Embed(CallOf("floats", {first, second})),
              IsStatus(absl::StatusCode::kUnimplemented, "take --protocol linserve"));
  Ended ended;
  client_.EmbedAsync(CallOf("floats", {first, second}), ended.callback());
  EXPECT_THAT(ended.status(), IsStatus(absl::StatusCode::kUnimplemented, ""));
  EXPECT_TRUE(client_.Embed(CallOf("floats", {first})).ok());
}

TEST_F(OipClientTest, CallsAsynchronously) {
  Ended good;
  Ended bad;
  client_.EmbedAsync(CallOf("tokens", {Tokens("a", {5})}), good.callback());
  client_.EmbedAsync(CallOf("nobody", {Tokens("a", {5})}), bad.callback());
  ASSERT_TRUE(good.status().ok()) << good.status();
  EXPECT_EQ(Values(good.results()[0].outputs.at("y")), ExpectedRows({5}));
  EXPECT_THAT(bad.status(), IsStatus(absl::StatusCode::kNotFound, "is not found"));
}

TEST_F(OipClientTest, AFaultOfOneSequenceIsTheCalls) {
  const auto results =
      client_.Embed(CallOf("tokens", {Tokens("a", {5}), Tokens("b", {kTestVocabulary})}));
  EXPECT_THAT(results, IsStatus(absl::StatusCode::kInvalidArgument, "sequence 1 of the batch"));
}

TEST(InferWire, KnowsAModelByItsMetadata) {
  inference::ModelMetadataResponse metadata;
  metadata.set_name("m");
  auto& x = *metadata.add_inputs();
  x.set_name("x");
  x.set_datatype("INT64");
  x.add_shape(-1);
  x.add_shape(-1);
  auto& y = *metadata.add_outputs();
  y.set_name("y");
  for (const int64_t size : {-1, -1, 8}) y.add_shape(size);
  const ModelDescription model = DecodeMetadata(metadata, 500);
  ASSERT_EQ(model.signature.inputs.size(), 1U);
  EXPECT_EQ(model.signature.inputs[0].kind, InputKind::kToken);
  EXPECT_EQ(model.signature.inputs[0].vocabulary, 500);
  EXPECT_EQ(ToString(model.signature.inputs[0].axes), "[n]");
  EXPECT_EQ(ToString(model.signature.outputs[0].axes), "[n, 8]");
}

TEST(InferWire, RefusesAnAnswerThatContradictsItself) {
  const EmbedCall call = CallOf("m", {Tokens("a", {1, 2})});
  inference::ModelInferResponse response;
  auto& output = *response.add_outputs();
  output.set_name("y");
  output.set_datatype("FP32");
  EXPECT_THAT(DecodeInferResponse(call, response),
              IsStatus(absl::StatusCode::kInternal, "no raw bytes"));
  response.add_raw_output_contents(std::string(8, '\0'));
  for (const int64_t size : {1, 3}) output.add_shape(size);
  EXPECT_THAT(DecodeInferResponse(call, response),
              IsStatus(absl::StatusCode::kInternal, "its shape contradicts"));
  output.set_shape(0, 2);
  output.set_shape(1, 1);
  EXPECT_THAT(DecodeInferResponse(call, response),
              IsStatus(absl::StatusCode::kInternal, "none of the batch of 1"));
}

}  // namespace
}  // namespace linserve
