#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "support/test_server.h"
#include "tei/v1/tei.grpc.pb.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

namespace wire = tei::v1;

// "words" is a SparseModel(): a word weighs half the number of times that it stands in a text.
class TeiSparseTest : public ::testing::Test {
 protected:
  static TestServerOptions Options() {
    return {.text = true, .prompts = {{"more", "twenty "}}, .sparse = "words"};
  }
  explicit TeiSparseTest(TestServerOptions options = Options()) : server_(std::move(options)) {}

  static std::unique_ptr<grpc::ClientContext> Named(const std::string& model) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("linserve-model", model);
    return context;
  }

  static wire::EmbedSparseRequest RequestOf(const std::string& text) {
    wire::EmbedSparseRequest request;
    request.set_inputs(text);
    return request;
  }

  grpc::Status Ask(const wire::EmbedSparseRequest& request, wire::EmbedSparseResponse& response,
                   const std::string& model = "words") {
    return embed_->EmbedSparse(Named(model).get(), request, &response);
  }

  TestServer server_;
  std::unique_ptr<wire::Embed::Stub> embed_ = wire::Embed::NewStub(
      grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials()));
};

std::vector<std::pair<uint32_t, float>> WeightsOf(const wire::EmbedSparseResponse& response) {
  std::vector<std::pair<uint32_t, float>> weights;
  for (const wire::SparseValue& one : response.sparse_embeddings()) {
    weights.emplace_back(one.index(), one.value());
  }
  return weights;
}

TEST_F(TeiSparseTest, GivesTheWeightsThatAreNotZeroAndSaysWhatItTook) {
  wire::EmbedSparseResponse response;
  const grpc::Status status = Ask(RequestOf("thirty ten thirty"), response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(WeightsOf(response),
              ElementsAre(Pair(1, 0.5F), Pair(2, 0.5F), Pair(10, 0.5F), Pair(30, 1.0F)));
  EXPECT_EQ(response.metadata().compute_chars(), 17U);
  EXPECT_EQ(response.metadata().compute_tokens(), 5U);
  EXPECT_GT(response.metadata().total_time_ns(), 0U);
}

TEST_F(TeiSparseTest, PromptsAndTruncationAreThoseOfTheRequest) {
  wire::EmbedSparseResponse response;
  wire::EmbedSparseRequest request = RequestOf("ten");
  request.set_prompt_name("more");
  ASSERT_TRUE(Ask(request, response).ok());
  EXPECT_EQ(response.sparse_embeddings_size(), 4);
  std::string text = "thirty ";
  for (int64_t i = 0; i < kTestLongest; ++i) text += "ten ";
  request = RequestOf(text);
  EXPECT_EQ(Ask(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_truncate(true);
  ASSERT_TRUE(Ask(request, response).ok());
  EXPECT_EQ(response.sparse_embeddings_size(), 4);
  request.set_truncation_direction(wire::TRUNCATION_DIRECTION_LEFT);
  ASSERT_TRUE(Ask(request, response).ok());
  EXPECT_EQ(response.sparse_embeddings_size(), 3);
}

TEST_F(TeiSparseTest, AStreamIsAnsweredInTheOrderOfItsRequests) {
  const auto context = Named("words");
  const auto stream = embed_->EmbedSparseStream(context.get());
  for (const char* text : {"ten", "twenty", "thirty"}) {
    ASSERT_TRUE(stream->Write(RequestOf(text)));
  }
  stream->WritesDone();
  for (const uint32_t word : {10, 20, 30}) {
    wire::EmbedSparseResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_THAT(WeightsOf(response), ElementsAre(Pair(1, 0.5F), Pair(2, 0.5F), Pair(word, 0.5F)));
  }
  wire::EmbedSparseResponse none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TeiSparseTest, OneKindOfModelIsNotTakenForAnother) {
  wire::EmbedSparseResponse sparse;
  const grpc::Status dense = Ask(RequestOf("a"), sparse, "tokens");
  EXPECT_EQ(dense.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(dense.error_message(), HasSubstr("no sparse embedding model; it gives embeddings"));
  wire::EmbedRequest request;
  request.set_inputs("ten");
  wire::EmbedResponse response;
  const grpc::Status other = embed_->Embed(Named("words").get(), request, &response);
  EXPECT_EQ(other.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(other.error_message(), HasSubstr("use /embed_sparse or tei.v1.EmbedSparse"));
}

class SmallTeiSparseTest : public TeiSparseTest {
 protected:
  static TestServerOptions Small() {
    TestServerOptions options = Options();
    options.grpc.limits.max_text_bytes = 100;
    options.grpc.limits.max_message_bytes = 512;
    return options;
  }
  SmallTeiSparseTest() : TeiSparseTest(Small()) {}
};

TEST_F(SmallTeiSparseTest, BoundsHoldForTextsNamesAndAnswers) {
  wire::EmbedSparseResponse response;
  EXPECT_TRUE(Ask(RequestOf("ten"), response).ok());
  EXPECT_TRUE(Ask(RequestOf(std::string(100, 'a')), response).ok());
  EXPECT_THAT(Ask(RequestOf(std::string(101, 'a')), response).error_message(),
              HasSubstr("max_text_bytes"));
  wire::EmbedSparseRequest request = RequestOf("ten");
  request.set_prompt_name(std::string(129, 'a'));
  EXPECT_EQ(Ask(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Ask(RequestOf(std::string(600, 'a')), response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace linserve
