#include <grpcpp/grpcpp.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/test_server.h"
#include "tei/v1/tei.grpc.pb.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace wire = tei::v1;

// tests/data/text/encoded.json has the ids of this text.
const std::string kTeiText = "the server answers";
const std::vector<int64_t> kTeiIds = {24, 73, 9, 3, 6, 12, 5, 30, 21, 5};

// "tokens" gives (id, place, n, 1) for each id.
class TeiTest : public ::testing::Test {
 protected:
  explicit TeiTest(TestServerOptions options = {.dimensions = {2},
                                                .text = true,
                                                .prompts = {{"query", "the "}}})
      : server_(std::move(options)) {}

  // Returns a context whose call is about "tokens".
  static std::unique_ptr<grpc::ClientContext> Named(const std::string& model = "tokens") {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("linserve-model", model);
    return context;
  }

  static wire::EmbedRequest RequestOf(const std::string& text) {
    wire::EmbedRequest request;
    request.set_inputs(text);
    return request;
  }

  std::vector<float> Embed(const wire::EmbedRequest& request) {
    wire::EmbedResponse response;
    const grpc::Status status = embed_->Embed(Named().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.embeddings().begin(), response.embeddings().end()};
  }

  grpc::Status Refused(const wire::EmbedRequest& request, const std::string& model = "tokens") {
    wire::EmbedResponse response;
    return embed_->Embed(Named(model).get(), request, &response);
  }

  TestServer server_;
  std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials());
  std::unique_ptr<wire::Embed::Stub> embed_ = wire::Embed::NewStub(channel_);
  std::unique_ptr<wire::Tokenize::Stub> tokenize_ = wire::Tokenize::NewStub(channel_);
};

TEST_F(TeiTest, EmbedsATextAndSaysWhatItTook) {
  wire::EmbedRequest request = RequestOf(kTeiText);
  request.set_normalize(false);
  wire::EmbedResponse response;
  ASSERT_TRUE(embed_->Embed(Named().get(), request, &response).ok());
  // The mean of the rows of ten tokens.
  EXPECT_THAT(response.embeddings(), ElementsAre(FloatNear(18.8F, 1e-4F), 4.5F, 10, 1));
  const wire::Metadata& metadata = response.metadata();
  EXPECT_EQ(metadata.compute_chars(), kTeiText.size());
  EXPECT_EQ(metadata.compute_tokens(), kTeiIds.size());
  EXPECT_GT(metadata.inference_time_ns(), 0U);
  EXPECT_GE(metadata.total_time_ns(), metadata.inference_time_ns() + metadata.queue_time_ns());

  request.clear_normalize();
  const float norm = std::sqrt(18.8F * 18.8F + 4.5F * 4.5F);
  request.set_dimensions(2);
  EXPECT_THAT(Embed(request),
              ElementsAre(FloatNear(18.8F / norm, 1e-5F), FloatNear(4.5F / norm, 1e-5F)));
  request.set_dimensions(0);
  EXPECT_EQ(Refused(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(TeiTest, PromptsAndTruncationAreThoseOfTheRequest) {
  wire::EmbedRequest request = RequestOf("server answers");
  request.set_prompt_name("query");
  EXPECT_EQ(Embed(request), Embed(RequestOf(kTeiText)));
  request.set_prompt_name("passage");
  EXPECT_THAT(Refused(request).error_message(), HasSubstr("expected one of 'query'"));

  std::string text;
  for (const char* word : {"server ", "a "}) {
    for (int64_t i = 0; i < kTestLongest; ++i) text += word;
  }
  request = RequestOf(text);
  EXPECT_EQ(Refused(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_truncate(true);
  const std::vector<float> right = Embed(request);
  request.set_truncation_direction(wire::TRUNCATION_DIRECTION_LEFT);
  EXPECT_NE(Embed(request), right);
}

TEST_F(TeiTest, EmbedsAllTokens) {
  wire::EmbedAllRequest request;
  request.set_inputs(kTeiText);
  wire::EmbedAllResponse response;
  ASSERT_TRUE(embed_->EmbedAll(Named().get(), request, &response).ok());
  std::vector<float> rows;
  for (const auto& row : response.token_embeddings()) {
    rows.insert(rows.end(), row.embeddings().begin(), row.embeddings().end());
  }
  EXPECT_EQ(rows, ExpectedRows(kTeiIds));
  EXPECT_EQ(response.metadata().compute_tokens(), kTeiIds.size());
}

TEST_F(TeiTest, TokenizesAndDecodes) {
  wire::EncodeRequest request;
  request.set_inputs(kTeiText);
  request.set_add_special_tokens(true);
  wire::EncodeResponse response;
  ASSERT_TRUE(tokenize_->Tokenize(Named().get(), request, &response).ok());
  wire::DecodeRequest ids;
  std::string text;
  for (const wire::SimpleToken& token : response.tokens()) {
    ids.add_ids(token.id());
    text += token.text();
    EXPECT_EQ(token.text(), kTeiText.substr(token.start(), token.stop() - token.start()));
  }
  EXPECT_EQ(text, kTeiText);
  EXPECT_EQ(std::vector<int64_t>(ids.ids().begin(), ids.ids().end()), kTeiIds);
  wire::DecodeResponse decoded;
  ASSERT_TRUE(tokenize_->Decode(Named().get(), ids, &decoded).ok());
  EXPECT_EQ(decoded.text(), kTeiText);
  ids.add_ids(std::numeric_limits<uint32_t>::max());
  EXPECT_THAT(tokenize_->Decode(Named().get(), ids, &decoded).error_message(),
              HasSubstr("not in the vocabulary"));
}

TEST_F(TeiTest, StreamsAnswerInTheOrderOfTheirRequestsAndEndWithTheFirstFault) {
  const auto context = Named();
  const auto stream = embed_->EmbedStream(context.get());
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(kTeiText + std::string(static_cast<size_t>(i), 'a'));
  for (const std::string& text : texts) ASSERT_TRUE(stream->Write(RequestOf(text)));
  ASSERT_TRUE(stream->Write(RequestOf("")));  // it has no tokens
  ASSERT_TRUE(stream->Write(RequestOf(kTeiText)));
  stream->WritesDone();
  wire::EmbedResponse response;
  for (const std::string& text : texts) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(std::vector<float>(response.embeddings().begin(), response.embeddings().end()),
              Embed(RequestOf(text)));
  }
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("no tokens"));
}

TEST_F(TeiTest, TokensAndAllRowsStreamToo) {
  const auto context = Named();
  const auto tokens = tokenize_->TokenizeStream(context.get());
  wire::EncodeRequest text;
  text.set_inputs(kTeiText);
  ASSERT_TRUE(tokens->Write(text));
  wire::EncodeResponse encoded;
  ASSERT_TRUE(tokens->Read(&encoded));
  EXPECT_THAT(encoded.tokens(), SizeIs(kTeiIds.size()));
  tokens->WritesDone();
  EXPECT_TRUE(tokens->Finish().ok());

  const auto decode_context = Named();
  const auto texts = tokenize_->DecodeStream(decode_context.get());
  wire::DecodeRequest ids;
  ids.mutable_ids()->Assign(kTeiIds.begin(), kTeiIds.end());
  wire::DecodeResponse decoded;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(texts->Write(ids));
    ASSERT_TRUE(texts->Read(&decoded));
    EXPECT_EQ(decoded.text(), kTeiText);
  }
  texts->WritesDone();
  EXPECT_TRUE(texts->Finish().ok());

  const auto all_context = Named();
  const auto all = embed_->EmbedAllStream(all_context.get());
  wire::EmbedAllRequest request;
  request.set_inputs(kTeiText);
  wire::EmbedAllResponse rows;
  ASSERT_TRUE(all->Write(request));
  ASSERT_TRUE(all->Read(&rows));
  EXPECT_THAT(rows.token_embeddings(), SizeIs(kTeiIds.size()));
  all->WritesDone();
  EXPECT_TRUE(all->Finish().ok());
}

TEST_F(TeiTest, AModelMustBeNamedWhereThereAreSeveral) {
  wire::EmbedResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(embed_->Embed(&context, RequestOf(kTeiText), &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Refused(RequestOf(kTeiText), "nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Refused(RequestOf(kTeiText), "floats").error_message(), HasSubstr("no tokenizer"));
}

TEST_F(TeiTest, DescribesTheModel) {
  wire::InfoResponse info;
  ASSERT_TRUE(wire::Info::NewStub(channel_)->Info(Named().get(), {}, &info).ok());
  EXPECT_EQ(info.model_id(), "tokens");
  EXPECT_EQ(info.version(), "test");
  EXPECT_EQ(info.model_dtype(), "float32");
  EXPECT_THAT(info.model_sha(), ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(info.max_input_length(), kTestLongest);
  EXPECT_GT(info.max_client_batch_size(), 0U);
  EXPECT_GT(info.tokenization_workers(), 0U);
}

TEST_F(TeiTest, WhatIsNotDoneSaysSo) {
  wire::RerankResponse ranks;
  const auto context = Named();
  const grpc::Status end =
      wire::Rerank::NewStub(channel_)->RerankStream(context.get(), &ranks)->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(end.error_message(), HasSubstr("use "));
}

class SmallTeiTest : public TeiTest {
 protected:
  static TestServerOptions Small() {
    TestServerOptions options{.text = true};
    options.grpc.limits.max_text_bytes = 100;
    options.grpc.limits.max_message_bytes = 512;
    return options;
  }
  SmallTeiTest() : TeiTest(Small()) {}
};

TEST_F(SmallTeiTest, BoundsHoldForTextsIdsAndAnswers) {
  EXPECT_THAT(Refused(RequestOf(std::string(101, 'a'))).error_message(),
              HasSubstr("max_text_bytes"));
  wire::EncodeRequest text;
  text.set_inputs(std::string(101, 'a'));
  wire::EncodeResponse tokens;
  EXPECT_THAT(tokenize_->Tokenize(Named().get(), text, &tokens).error_message(),
              HasSubstr("max_text_bytes"));
  wire::DecodeRequest ids;
  for (int i = 0; i <= 100; ++i) ids.add_ids(5);
  wire::DecodeResponse decoded;
  EXPECT_THAT(tokenize_->Decode(Named().get(), ids, &decoded).error_message(),
              HasSubstr("max_text_bytes"));
  // Each of its tokens, which are more than 32, becomes a row of 16 bytes.
  wire::EmbedAllRequest all;
  for (int i = 0; i < 16; ++i) all.mutable_inputs()->append("the a ");
  wire::EmbedAllResponse rows;
  const grpc::Status status = embed_->EmbedAll(Named().get(), all, &rows);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << rows.ShortDebugString();
  EXPECT_THAT(status.error_message(), HasSubstr("max_message_bytes"));
}

}  // namespace
}  // namespace linserve
