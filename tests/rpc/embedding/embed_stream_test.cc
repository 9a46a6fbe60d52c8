#include <grpcpp/grpcpp.h>

#include <deque>

#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;

constexpr const char* kOpenStreams = "linserve_open_streams{rpc=\"EmbedStream\"}";

EmbedCall Numbered(int64_t number) {
  EmbedCall call = CallOf("tokens", {Tokens("s", {number % 100, number / 100})});
  call.request_id = std::to_string(number);
  return call;
}

class EmbedStreamTest : public ::testing::Test {
 protected:
  // Expects an answer to what is sent on a stream that must still live.
  void ExpectAnswers(EmbedStream& stream) {
    Ended good;
    ASSERT_TRUE(stream.Send(Numbered(7), good.stream_callback()).ok());
    EXPECT_TRUE(good.status().ok()) << good.status();
  }

  TestServer server_;
  EmbeddingClient client_{server_.client_options()};
};

TEST_F(EmbedStreamTest, ManyRequestsInFlightAreMatchedById) {
  const auto stream = client_.OpenStream();
  std::deque<Ended> answers(1000);
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(stream->Send(Numbered(static_cast<int64_t>(i)), answers[i].stream_callback()).ok());
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].status().ok()) << answers[i].status();
    const auto number = static_cast<int64_t>(i);
    ASSERT_EQ(Values(answers[i].results()[0].outputs.at("y")),
              ExpectedRows({number % 100, number / 100}));
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(server_.WaitFor(kOpenStreams, 0));
  EXPECT_TRUE(server_.WaitFor(InFlight("EmbedStream"), 0));
  EXPECT_TRUE(server_.WaitFor(
      R"(linserve_requests_total{code="OK",model="tokens",rpc="EmbedStream"})", 1000));
}

TEST_F(EmbedStreamTest, RequestsAreAnsweredInTheOrderInWhichTheyFinish) {
  server_.tokens().Hold();
  const auto stream = client_.OpenStream();
  Ended slow;
  Ended quick;
  ASSERT_TRUE(stream->Send(Numbered(1), slow.stream_callback()).ok());
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  ASSERT_TRUE(
      stream->Send(CallOf("floats", {Floats("a", {1, 2, 3})}), quick.stream_callback()).ok());
  EXPECT_TRUE(quick.status().ok()) << quick.status();
  server_.tokens().LetGo();
  EXPECT_TRUE(slow.status().ok()) << slow.status();
}

TEST_F(EmbedStreamTest, AFaultyRequestIsAnAnswerAndTheStreamLivesOn) {
  const auto stream = client_.OpenStream();
  Ended unknown;
  EmbedCall call = CallOf("tolkiens", {Tokens("a", {1})});
  ASSERT_TRUE(stream->Send(call, unknown.stream_callback()).ok());
  EXPECT_THAT(unknown.status(), IsStatus(StatusCode::kNotFound, "model 'tolkiens' is not found"));
  ExpectAnswers(*stream);
  Ended empty;
  ASSERT_TRUE(stream->Send(CallOf("tokens", {}), empty.stream_callback()).ok());
  EXPECT_THAT(empty.status(), IsInvalid("the request holds no sequences"));
  ExpectAnswers(*stream);
  Ended faulty;
  call = CallOf("tokens", {Tokens("bad", {-1}), Tokens("good", {1})});
  ASSERT_TRUE(stream->Send(call, faulty.stream_callback()).ok());
  ASSERT_TRUE(faulty.status().ok()) << faulty.status();
  EXPECT_THAT(faulty.results()[0].status, IsInvalid("expected 0 <= id < 100"));
  EXPECT_TRUE(faulty.results()[1].status.ok());
  ExpectAnswers(*stream);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EmbedStreamTest, HalfClosingFinishesWhatIsInFlight) {
  server_.tokens().Hold();
  const auto stub = server_.NewStub();
  grpc::ClientContext context;
  auto stream = stub->EmbedStream(&context);
  v1::EmbedRequest request;
  request.set_request_id("only");
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->WritesDone());
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  server_.tokens().LetGo();
  v1::EmbedResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "only");
  EXPECT_TRUE(response.last());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EmbedStreamTest, AnIdThatIsInFlightIsRefusedAndTheFirstOneIsAnswered) {
  server_.tokens().Hold();
  const auto stub = server_.NewStub();
  grpc::ClientContext context;
  auto stream = stub->EmbedStream(&context);
  v1::EmbedRequest request;
  request.set_request_id("twin");
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  ASSERT_TRUE(stream->Write(request));
  v1::EmbedResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.request_failed());
  EXPECT_EQ(response.request_id(), "twin");
  EXPECT_EQ(response.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(response.message(), "request_id 'twin' is in flight on this stream already");
  server_.tokens().LetGo();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.request_failed());
  EXPECT_EQ(response.code(), grpc::StatusCode::OK);
  // The request's id is free again.
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), grpc::StatusCode::OK) << response.message();
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(EmbedStreamLimit, ReadingPausesWhileTooMuchIsInFlight) {
  TestServer server({.grpc = {.limits = {.max_requests_per_stream = 2}}});
  server.tokens().Hold();
  EmbeddingClient client(server.client_options());
  const auto stream = client.OpenStream();
  std::deque<Ended> answers(10);
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(stream->Send(Numbered(static_cast<int64_t>(i)), answers[i].stream_callback()).ok());
  }
  EXPECT_TRUE(server.WaitFor(InFlight("EmbedStream"), 2));
  // The server has time for other callers, and none for the rest of the stream.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client.ListModels().ok());
    ASSERT_EQ(server.Scrape()[InFlight("EmbedStream")], 2);
  }
  server.tokens().LetGo();
  for (Ended& answer : answers) EXPECT_TRUE(answer.status().ok()) << answer.status();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EmbedStreamTest, CancellingDropsWhatIsInFlight) {
  server_.tokens().ComputeWithoutEnd();
  const auto stream = client_.OpenStream();
  Ended ended;
  ASSERT_TRUE(stream->Send(Numbered(1), ended.stream_callback()).ok());
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  stream->Cancel();
  EXPECT_EQ(ended.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(server_.WaitFor(Abandoned("batch"), 1));
  EXPECT_TRUE(server_.WaitFor(kOpenStreams, 0));
  EXPECT_TRUE(server_.WaitFor(InFlight("EmbedStream"), 0));
  server_.tokens().LetGo();
  EXPECT_TRUE(Serves(server_));
}

TEST_F(EmbedStreamTest, AFullQueueIsAnAnswer) {
  TestServer server({.limits = {.max_sequences = 1}});
  EmbeddingClient client(server.client_options());
  const auto stream = client.OpenStream();
  Ended refused;
  ASSERT_TRUE(
      stream
          ->Send(CallOf("tokens", {Tokens("a", {1}), Tokens("b", {1})}), refused.stream_callback())
          .ok());
  EXPECT_THAT(refused.status(), IsStatus(StatusCode::kResourceExhausted, "max_queue_sequences"));
  ExpectAnswers(*stream);
}

}  // namespace
}  // namespace linserve
