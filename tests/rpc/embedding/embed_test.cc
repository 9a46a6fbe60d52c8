#include <grpcpp/grpcpp.h>

#include <map>
#include <numeric>

#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

// Reads all messages of one call.
std::vector<v1::EmbedResponse> ReadAll(grpc::ClientReader<v1::EmbedResponse>& reader) {
  std::vector<v1::EmbedResponse> messages;
  v1::EmbedResponse message;
  while (reader.Read(&message)) messages.push_back(message);
  const grpc::Status status = reader.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return messages;
}

v1::EmbedRequest RequestOf(const std::vector<std::vector<uint32_t>>& sequences) {
  v1::EmbedRequest request;
  request.set_model("tokens");
  for (const auto& ids : sequences) {
    request.add_sequences()->mutable_token_ids()->Assign(ids.begin(), ids.end());
  }
  return request;
}

TEST(Embed, ReturnsTheRowsOfEverySequence) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf("tokens", {Tokens("a", {5, 6, 7}), Tokens("b", {8})}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(0).id, "a");
  EXPECT_EQ(results->at(0).tokens, 3);
  EXPECT_EQ(Values(results->at(0).outputs.at("y")), ExpectedRows({5, 6, 7}));
  EXPECT_EQ(Values(results->at(1).outputs.at("y")), ExpectedRows({8}));
  EXPECT_EQ(results->at(1).outputs.at("y").shape(), (Shape{1, 4}));
  EXPECT_GT(results->at(0).timing.compute.count(), 0);
  EXPECT_EQ(results->at(0).timing.batch_sequences, 2);
  EXPECT_EQ(results->at(0).timing.batch_tokens, 4);
}

TEST(Embed, TakesLargeSequencesAndSmallOnesInOneRequest) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  std::vector<float> large(3 * 19999);
  std::iota(large.begin(), large.end(), 0.0F);
  EmbedCall call =
      CallOf("floats", {Floats("a", large), Floats("b", {1, 2, 3}), Floats("c", large)});
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(Values(results->at(0).outputs.at("y")), large);
  EXPECT_EQ(Values(results->at(1).outputs.at("y")), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(Values(results->at(2).outputs.at("y")), large);
  call.sequences.pop_back();
  call.sequences.pop_back();
  call.chunk_bytes = 100000;
  const auto chunks = client.Embed(call);
  ASSERT_TRUE(chunks.ok()) << chunks.status();
  EXPECT_EQ(Values(chunks->at(0).outputs.at("y")), large);
}

TEST(Embed, TakesOptionalInputsOfALengthOfTheirOwn) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  NamedSequence with = Floats("with", {1, 2, 3});
  with.inputs["context"] = Tensor::FromFloats({2, 3}, {10, 20, 30, 100, 200, 300});
  const auto results = client.Embed(CallOf("floats", {with, Floats("without", {4, 5, 6})}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(Values(results->at(0).outputs.at("y")), ElementsAre(111, 222, 333));
  EXPECT_THAT(Values(results->at(1).outputs.at("y")), ElementsAre(4, 5, 6));
}

TEST(Embed, PassesPoolingNormalizingAndDTypeToTheModel) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  EmbedCall call = CallOf("floats", {Floats("a", {1, 2, 2, 3, 6, 6})});
  const std::map<Pooling, std::vector<float>> expected = {{Pooling::kNone, {1, 2, 2, 3, 6, 6}},
                                                          {Pooling::kMean, {2, 4, 4}},
                                                          {Pooling::kCls, {1, 2, 2}},
                                                          {Pooling::kLast, {3, 6, 6}},
                                                          {Pooling::kMax, {3, 6, 6}}};
  for (const auto& [pooling, values] : expected) {
    call.options.pooling = pooling;
    const auto results = client.Embed(call);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(Values(results->at(0).outputs.at("y")), values);
  }
  call.options.pooling = Pooling::kMean;
  call.options.normalize = true;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    call.options.dtype = dtype;
    const auto results = client.Embed(call);
    ASSERT_TRUE(results.ok()) << results.status();
    const Tensor& y = results->at(0).outputs.at("y");
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.shape(), (Shape{3}));
    EXPECT_THAT(Values(y),
                Pointwise(FloatNear(0.01F), std::vector<float>{1.0F / 3, 2.0F / 3, 2.0F / 3}));
  }
}

TEST(Embed, PoolsAsTheModelIsServedUnlessTold) {
  TestServer server({.default_pooling = Pooling::kLast});
  const auto stub = server.NewStub();
  v1::EmbedRequest request = RequestOf({{4, 9}});
  grpc::ClientContext unspecified;
  auto messages = ReadAll(*stub->Embed(&unspecified, request));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0].rows().shape(), ElementsAre(4));
  EXPECT_EQ(messages[0].total_rows(), 1U);
  request.mutable_options()->set_pooling(v1::POOLING_NONE);
  grpc::ClientContext none;
  messages = ReadAll(*stub->Embed(&none, request));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0].rows().shape(), ElementsAre(2, 4));
}

TEST(Embed, ReturnsEveryOutputThatIsAskedFor) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  EmbedCall call = CallOf("tokens", {Tokens("a", {7, 8})});
  call.options.outputs = {"z", "y"};
  call.rows_per_chunk = 1;
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->at(0).outputs.size(), 2U);
  EXPECT_EQ(Values(results->at(0).outputs.at("y")), ExpectedRows({7, 8}));
  EXPECT_THAT(Values(results->at(0).outputs.at("z")), ElementsAre(0, 7, 1, 8));
}

TEST(Embed, ServesTenThousandSequencesInOneRequest) {
  TestServer server;
  EmbeddingClient client(server.client_options());
  std::vector<NamedSequence> sequences;
  for (int64_t i = 0; i < 10000; ++i) {
    sequences.push_back(Tokens(std::to_string(i), {i % 100, i / 100}));
  }
  const auto results = client.Embed(CallOf("tokens", std::move(sequences)));
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < results->size(); ++i) {
    ASSERT_TRUE(results->at(i).status.ok()) << results->at(i).status;
    ASSERT_EQ(results->at(i).id, std::to_string(i));
    const auto id = static_cast<int64_t>(i);
    ASSERT_EQ(Values(results->at(i).outputs.at("y")), ExpectedRows({id % 100, id / 100}));
  }
}

TEST(Embed, ResultsShareMessagesIfTheyMay) {
  TestServer server;
  const auto stub = server.NewStub();
  v1::EmbedRequest request = RequestOf(std::vector<std::vector<uint32_t>>(2000, {7, 8}));
  for (const bool together : {false, true}) {
    request.mutable_options()->set_together(together);
    grpc::ClientContext context;
    const std::vector<v1::EmbedResponse> messages = ReadAll(*stub->Embed(&context, request));
    std::vector<int> answers(2000);
    for (const v1::EmbedResponse& message : messages) {
      ++answers.at(message.index());
      for (const v1::EmbedResponse& other : message.others()) {
        ++answers.at(other.index());
        EXPECT_TRUE(other.last() && other.has_timing() && other.others().empty());
      }
    }
    EXPECT_THAT(answers, Each(1));
    if (together) {
      EXPECT_LT(messages.size(), 2000U);
    } else {
      EXPECT_EQ(messages.size(), 2000U);
    }
  }
}

TEST(Embed, ResultsComeAsSoonAsTheyAreReady) {
  TestServer server({.policy = {.max_sequences = 1}});
  server.tokens().Hold();
  const auto stub = server.NewStub();
  grpc::ClientContext context;
  auto reader = stub->Embed(&context, RequestOf({{3}, {4}}));
  server.tokens().Allow(1);
  v1::EmbedResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.index(), 0U);
  EXPECT_TRUE(server.tokens().WaitForStarted(2));
  EXPECT_EQ(server.tokens().computed(), 1);
  server.tokens().LetGo();
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.index(), 1U);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(Embed, LongResultsComeInChunksOfAsManyRowsAsAskedFor) {
  TestServer server;
  const std::vector<int64_t> ids = Ids(50);
  EmbeddingClient client(server.client_options());
  EmbedCall call = CallOf("tokens", {Tokens("a", ids)});
  call.rows_per_chunk = 7;
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(Values(results->at(0).outputs.at("y")), ExpectedRows(ids));

  v1::EmbedRequest request = RequestOf({{ids.begin(), ids.end()}});
  request.mutable_options()->set_rows_per_chunk(7);
  grpc::ClientContext context;
  const auto messages = ReadAll(*server.NewStub()->Embed(&context, request));
  ASSERT_EQ(messages.size(), 8U);
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].row_offset(), 7 * i);
    EXPECT_EQ(messages[i].total_rows(), 50U);
    EXPECT_EQ(messages[i].rows().shape(0), i < 7 ? 7 : 1);
    EXPECT_EQ(messages[i].last(), i == 7);
    EXPECT_EQ(messages[i].has_timing(), i == 7);
  }
}

TEST(Embed, LongResultsComeInChunksOfTheServersSize) {
  TestServer server({.grpc = {.limits = {.chunk_bytes = 1024}}});
  const std::vector<int64_t> ids = Ids(200);  // rows of 16 bytes
  grpc::ClientContext context;
  const auto stub = server.NewStub();
  const auto messages = ReadAll(*stub->Embed(&context, RequestOf({{ids.begin(), ids.end()}})));
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].rows().data().size(), 1024U);
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf("tokens", {Tokens("a", ids)}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(Values(results->at(0).outputs.at("y")), ExpectedRows(ids));
}

TEST(Embed, NoNumberOfRowsMakesAMessageThatIsTooLarge) {
  TestServer server({.grpc = {.limits = {.max_message_bytes = 65536}}});
  const std::vector<int64_t> ids = Ids(20000);
  EmbeddingClient client(server.client_options());
  EmbedCall call = CallOf("tokens", {Tokens("a", ids)});
  for (const uint32_t rows : {0U, 20000U, 0xFFFFFFFFU}) {
    call.rows_per_chunk = rows;
    const auto results = client.Embed(call);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_TRUE(results->at(0).status.ok()) << results->at(0).status;
    EXPECT_EQ(Values(results->at(0).outputs.at("y")), ExpectedRows(ids));
  }
}

TEST(Embed, EchoesTheRequestIdOrMakesOne) {
  TestServer server;
  const auto stub = server.NewStub();
  v1::EmbedRequest request = RequestOf({{1}});
  const auto id_of = [&](const char* header) {
    grpc::ClientContext context;
    if (header != nullptr) context.AddMetadata("x-request-id", header);
    return ReadAll(*stub->Embed(&context, request)).at(0).request_id();
  };
  const std::string made = id_of(nullptr);
  EXPECT_FALSE(made.empty());
  EXPECT_NE(id_of(nullptr), made);
  request.set_request_id("mine");
  EXPECT_EQ(id_of(nullptr), "mine");
  EXPECT_EQ(id_of("header"), "header");
}

TEST(Embed, RefusesARequestIdThatIsTooLongForALogLine) {
  TestServer server;
  const auto stub = server.NewStub();
  v1::EmbedRequest request = RequestOf({{1}});
  request.set_request_id(std::string(129, 'a'));
  grpc::ClientContext context;
  v1::EmbedResponse response;
  const auto reader = stub->Embed(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Serves(server));
}

TEST(Embed, CountsWhatItServes) {
  TestServer server;
  EXPECT_TRUE(Serves(server));
  EXPECT_TRUE(
      server.WaitFor(R"(linserve_requests_total{code="OK",model="tokens",rpc="Embed"})", 1));
  EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  EXPECT_EQ(server.Scrape()[OfTokens("linserve_sequences_total")], 1);
  EXPECT_EQ(server.Scrape()[OfTokens("linserve_tokens_total")], 2);
}

}  // namespace
}  // namespace linserve
