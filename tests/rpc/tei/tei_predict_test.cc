#include <grpcpp/grpcpp.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/test_server.h"
#include "tei/v1/tei.grpc.pb.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

namespace wire = tei::v1;

// "moods" has three labels, and "ranker" has one: see ClassifierModel().
class TeiPredictTest : public ::testing::Test {
 protected:
  static TestServerOptions Options() {
    return {.text = true,
            .classifiers = {{"moods", {"sad", "so-so", "glad"}}, {"ranker", {"fits"}}}};
  }
  explicit TeiPredictTest(TestServerOptions options = Options()) : server_(std::move(options)) {}

  static std::unique_ptr<grpc::ClientContext> Named(const std::string& model) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("linserve-model", model);
    return context;
  }

  static wire::PredictPairRequest PairOf(const std::vector<std::string>& texts) {
    wire::PredictPairRequest request;
    for (const std::string& text : texts) request.add_inputs(text);
    request.set_raw_scores(true);
    return request;
  }

  static wire::RerankRequest Question(const std::string& query,
                                      const std::vector<std::string>& texts) {
    wire::RerankRequest request;
    request.set_query(query);
    for (const std::string& text : texts) request.add_texts(text);
    return request;
  }

  grpc::Status Refused(const wire::RerankRequest& request, const std::string& model = "ranker") {
    wire::RerankResponse response;
    return rerank_->Rerank(Named(model).get(), request, &response);
  }
  grpc::Status Refused(const wire::PredictPairRequest& request,
                       const std::string& model = "moods") {
    wire::PredictResponse response;
    return predict_->PredictPair(Named(model).get(), request, &response);
  }

  TestServer server_;
  std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials());
  std::unique_ptr<wire::Predict::Stub> predict_ = wire::Predict::NewStub(channel_);
  std::unique_ptr<wire::Rerank::Stub> rerank_ = wire::Rerank::NewStub(channel_);
};

void ExpectPredictions(const wire::PredictResponse& response,
                       const std::vector<std::pair<std::string, double>>& expected) {
  ASSERT_EQ(response.predictions().size(), std::ssize(expected));
  for (int i = 0; i < response.predictions_size(); ++i) {
    EXPECT_EQ(response.predictions(i).label(), expected[static_cast<size_t>(i)].first);
    EXPECT_NEAR(response.predictions(i).score(), expected[static_cast<size_t>(i)].second, 1e-5);
  }
}

TEST_F(TeiPredictTest, ScoresTextsAndPairsAndSaysWhatItTook) {
  wire::PredictRequest request;
  request.set_inputs("ten");
  wire::PredictResponse response;
  ASSERT_TRUE(predict_->Predict(Named("moods").get(), request, &response).ok());
  const double sum = 1 + std::exp(-1) + std::exp(-2);
  ExpectPredictions(
      response, {{"glad", 1 / sum}, {"so-so", std::exp(-1) / sum}, {"sad", std::exp(-2) / sum}});
  EXPECT_EQ(response.metadata().compute_chars(), 3U);
  EXPECT_EQ(response.metadata().compute_tokens(), 3U);

  ASSERT_TRUE(
      predict_->PredictPair(Named("moods").get(), PairOf({"ten", "thirty"}), &response).ok());
  ExpectPredictions(response, {{"glad", 3 + 3.33}, {"so-so", 2 + 3.33}, {"sad", 1 + 3.33}});
  EXPECT_EQ(response.metadata().compute_chars(), 9U);
  EXPECT_EQ(response.metadata().compute_tokens(), 5U);
}

TEST_F(TeiPredictTest, StreamsAnswerInTheirOrder) {
  const auto context = Named("moods");
  const auto stream = predict_->PredictPairStream(context.get());
  for (const char* second : {"ten", "twenty", "thirty"}) stream->Write(PairOf({"ten", second}));
  stream->WritesDone();
  wire::PredictResponse response;
  for (const double ids : {10.0, 20.0, 30.0}) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_NEAR(response.predictions(0).score(), 3 + 0.13 + (ids + 2) / 10, 1e-5);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TeiPredictTest, RanksTexts) {
  wire::RerankRequest request = Question("ten", {"ten", "thirty", "twenty"});
  wire::RerankResponse response;
  ASSERT_TRUE(rerank_->Rerank(Named("ranker").get(), request, &response).ok());
  ASSERT_EQ(response.ranks_size(), 3);
  EXPECT_EQ(response.ranks(0).index(), 1U);
  EXPECT_EQ(response.ranks(1).index(), 2U);
  EXPECT_NEAR(response.ranks(0).score(), 1 / (1 + std::exp(-1 - 3.33)), 1e-6);
  EXPECT_FALSE(response.ranks(0).has_text());
  EXPECT_EQ(response.metadata().compute_tokens(), 15U);
  request.set_return_text(true);
  ASSERT_TRUE(rerank_->Rerank(Named("ranker").get(), request, &response).ok());
  EXPECT_EQ(response.ranks(0).text(), "thirty");
}

// What it counts of a query does not grow with the texts.
TEST_F(TeiPredictTest, CountsTheQueryForEachText) {
  wire::RerankResponse response;
  const wire::RerankRequest request = Question("zwölf", {"ten", "thirty", ""});
  ASSERT_TRUE(rerank_->Rerank(Named("ranker").get(), request, &response).ok());
  EXPECT_EQ(response.metadata().compute_chars(), 3U * 5 + 3 + 6);
}

TEST_F(TeiPredictTest, SaysWhatIsWrong) {
  for (const auto& texts : std::vector<std::vector<std::string>>{{}, {"ten"}, {"a", "b", "c"}}) {
    const grpc::Status status = Refused(PairOf(texts));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                HasSubstr("expected two texts, which are read together, found " +
                          std::to_string(texts.size())));
  }
  EXPECT_THAT(Refused(Question("ten", {})).error_message(), HasSubstr("no sequences"));
  EXPECT_EQ(Refused(Question("ten", {"ten"}), "moods").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  const grpc::Status other = Refused(PairOf({"ten", "ten"}), "tokens");
  EXPECT_EQ(other.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(other.error_message(), HasSubstr("use /embed, /v1/embeddings or tei.v1.Embed"));
}

TEST_F(TeiPredictTest, InfoTellsTheKindOfModel) {
  const auto info = wire::Info::NewStub(channel_);
  for (const auto& [model, type] : {std::pair("moods", wire::MODEL_TYPE_CLASSIFIER),
                                    std::pair("ranker", wire::MODEL_TYPE_RERANKER),
                                    std::pair("tokens", wire::MODEL_TYPE_EMBEDDING)}) {
    wire::InfoResponse response;
    ASSERT_TRUE(info->Info(Named(model).get(), {}, &response).ok());
    EXPECT_EQ(response.model_type(), type) << model;
  }
}

class SmallPredictTest : public TeiPredictTest {
 protected:
  static TestServerOptions Small() {
    TestServerOptions options = Options();
    options.grpc.limits.max_text_bytes = 100;
    options.grpc.limits.max_sequences_per_request = 4;
    return options;
  }
  SmallPredictTest() : TeiPredictTest(Small()) {}
};

TEST_F(SmallPredictTest, BoundsHoldForTextsPairsAndLists) {
  const std::string half(50, 'a');
  EXPECT_TRUE(Refused(PairOf({half, half})).ok());
  EXPECT_THAT(Refused(PairOf({half, half + "a"})).error_message(), HasSubstr("max_text_bytes"));
  EXPECT_THAT(Refused(Question(half, {"ten", half + "a"})).error_message(),
              HasSubstr("max_text_bytes"));
  EXPECT_TRUE(Refused(Question("ten", {"a", "b", "c", "d"})).ok());
  EXPECT_THAT(Refused(Question("ten", {"a", "b", "c", "d", "e"})).error_message(),
              HasSubstr("holds more than 4"));
}

}  // namespace
}  // namespace linserve
