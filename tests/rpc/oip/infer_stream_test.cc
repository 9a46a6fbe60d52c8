#include <set>

#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using inference::ModelStreamInferResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferStreamTest : public InferTest {
 protected:
  using Stream = grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>;

  // Opens a stream with a header of value "true".
  std::unique_ptr<Stream> Open(const std::string& header = "") {
    if (!header.empty()) context_.AddMetadata(header, "true");
    return stub_->ModelStreamInfer(&context_);
  }

  static ModelInferRequest Numbered(const std::string& id) {
    ModelInferRequest request = TwoSequences();
    request.set_id(id);
    return request;
  }

  static ModelInferRequest OfFloats(const std::string& id) {
    ModelInferRequest request;
    request.set_model_name("floats");
    request.set_id(id);
    AddRaw<float>(request, "x", "FP32", {1, 1, 3}, {1, 2, 3});
    return request;
  }

  static ModelInferRequest Unknown(const std::string& id) {
    ModelInferRequest request = Numbered(id);
    request.set_model_name("nobody");
    return request;
  }

  // Returns the next answer; one without an id if the stream has ended.
  static ModelStreamInferResponse Next(Stream& stream) {
    ModelStreamInferResponse response;
    if (!stream.Read(&response)) response.Clear();
    return response;
  }

  static std::string NextId(Stream& stream) { return Next(stream).infer_response().id(); }

  static bool IsFinal(const ModelStreamInferResponse& response) {
    return response.infer_response().parameters().at("triton_final_response").bool_param();
  }

  grpc::ClientContext context_;
};

TEST_F(InferStreamTest, AnswersEveryRequestAndEndsWhenTheCallerHasHalfClosed) {
  const auto stream = Open();
  std::set<std::string> ids;
  for (int i = 0; i < 300; ++i) {
    ids.insert(std::to_string(i));
    ASSERT_TRUE(stream->Write(Numbered(std::to_string(i))));
  }
  stream->WritesDone();
  std::set<std::string> answered;
  ModelStreamInferResponse response;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.error_message(), "");
    EXPECT_TRUE(IsFinal(response));
    EXPECT_EQ(response.infer_response().raw_output_contents(0).size(), 2U * 3 * 4 * 4);
    answered.insert(response.infer_response().id());
  }
  EXPECT_EQ(answered, ids);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(server_.WaitFor("linserve_open_streams{rpc=\"ModelStreamInfer\"}", 0));
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelStreamInfer"), 0));
}

TEST_F(InferStreamTest, AnswersInTheOrderInWhichRequestsFinish) {
  server_.tokens().Hold();
  const auto stream = Open();
  stream->Write(Numbered("slow"));
  stream->Write(OfFloats("quick"));
  EXPECT_EQ(NextId(*stream), "quick");
  server_.tokens().LetGo();
  EXPECT_EQ(NextId(*stream), "slow");
}

TEST_F(InferStreamTest, AnswersInTheOrderOfTheRequestsIfAsked) {
  server_.tokens().Hold();
  const auto stream = Open("linserve-ordered");
  stream->Write(Numbered("slow"));
  stream->Write(OfFloats("quick"));
  stream->Write(Unknown("faulty"));
  EXPECT_TRUE(server_.WaitFor(R"(linserve_sequences_total{model="floats",version="1"})", 1));
  // The quick one waits to be sent.
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelStreamInfer"), 2));
  server_.tokens().LetGo();
  EXPECT_EQ(NextId(*stream), "slow");
  EXPECT_EQ(NextId(*stream), "quick");
  EXPECT_EQ(NextId(*stream), "faulty");
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InferStreamTest, AFaultyRequestIsAnAnswerAndTheStreamLives) {
  const auto stream = Open();
  stream->Write(Unknown("9"));
  const ModelStreamInferResponse fault = Next(*stream);
  EXPECT_EQ(fault.infer_response().id(), "9");
  EXPECT_EQ(fault.error_message().find("[request id: 9] model 'nobody' is not found"), 0U)
      << fault.error_message();
  stream->Write(Numbered("10"));
  EXPECT_EQ(NextId(*stream), "10");
}

TEST_F(InferStreamTest, EndsWithTheStatusOfTheFirstFaultIfAsked) {
  const auto stream = Open("triton_grpc_error");
  stream->Write(Numbered("1"));
  EXPECT_EQ(NextId(*stream), "1");
  stream->Write(Unknown("2"));
  EXPECT_EQ(NextId(*stream), "");
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("is not found"));
}

TEST_F(InferStreamTest, EndsWithAFaultInItsTurn) {
  context_.AddMetadata("linserve-ordered", "true");
  server_.tokens().Hold();
  const auto stream = Open("triton_grpc_error");
  stream->Write(Numbered("1"));
  stream->Write(Unknown("2"));
  EXPECT_TRUE(server_.WaitFor(
      R"(linserve_requests_total{code="NOT_FOUND",model="",rpc="ModelStreamInfer"})", 1));
  server_.tokens().LetGo();
  EXPECT_EQ(NextId(*stream), "1");
  EXPECT_EQ(NextId(*stream), "");
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(InferStreamTest, SendsNothingThatIsInOrderAfterTheFaultThatEndsIt) {
  context_.AddMetadata("linserve-ordered", "true");
  server_.tokens().Hold();
  const auto stream = Open("triton_grpc_error");
  stream->Write(Numbered("1"));
  stream->Write(Unknown("2"));
  for (int i = 3; i < 30; ++i) stream->Write(OfFloats(std::to_string(i)));
  // Those wait for their turn to be sent.
  EXPECT_TRUE(server_.WaitFor(R"(linserve_sequences_total{model="floats",version="1"})", 27));
  server_.tokens().LetGo();
  EXPECT_EQ(NextId(*stream), "1");
  EXPECT_EQ(NextId(*stream), "");
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelStreamInfer"), 0));
}

TEST_F(InferStreamTest, SendsTheRowsOfALongAnswerInChunks) {
  ModelInferRequest request;
  request.set_model_name("tokens");
  AddRaw<int64_t>(request, "x", "INT64", {1, 5}, {5, 6, 7, 8, 9});
  (*request.mutable_parameters())["chunk_rows"].set_int64_param(2);
  const auto stream = Open();
  stream->Write(request);
  std::string rows;
  for (const int64_t expected : {2, 2, 1}) {
    const ModelStreamInferResponse part = Next(*stream);
    EXPECT_THAT(part.infer_response().outputs(0).shape(), ElementsAre(1, expected, 4));
    rows += part.infer_response().raw_output_contents(0);
    EXPECT_EQ(IsFinal(part), expected == 1);
  }
  EXPECT_EQ(rows, Bytes(ExpectedRows({5, 6, 7, 8, 9})));
}

TEST_F(InferStreamTest, RefusesChunksOfWhatHasNoRowsOfItsOwn) {
  const auto stream = Open();
  ModelInferRequest two = Numbered("1");
  (*two.mutable_parameters())["chunk_rows"].set_int64_param(2);
  stream->Write(two);
  EXPECT_THAT(Next(*stream).error_message(), HasSubstr("expected one sequence in the request"));
  ModelInferResponse response;
  EXPECT_THAT(Infer(two, response).error_message(), HasSubstr("use ModelStreamInfer"));
}

TEST_F(InferStreamTest, OfACallerWhoHasLeftComesToItsEnd) {
  server_.tokens().Hold();
  auto stream = Open("linserve-ordered");
  stream->Write(Numbered("1"));
  stream->Write(OfFloats("2"));
  EXPECT_TRUE(server_.WaitFor(R"(linserve_sequences_total{model="floats",version="1"})", 1));
  context_.TryCancel();
  stream->Finish();
  EXPECT_TRUE(server_.WaitFor("linserve_open_streams{rpc=\"ModelStreamInfer\"}", 0));
  server_.tokens().LetGo();
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelStreamInfer"), 0));
}

TEST_F(InferStreamTest, ThatIdlesEndsWhenTheServerDrains) {
  const auto stream = Open();
  stream->Write(Numbered("1"));
  EXPECT_EQ(NextId(*stream), "1");
  server_.grpc().Drain();
  EXPECT_EQ(NextId(*stream), "");
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace linserve
