#include <atomic>
#include <thread>

#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using inference::ModelStatisticsRequest;
using inference::ModelStatisticsResponse;

class InferenceStatisticsTest : public InferTest {
 protected:
  grpc::Status Statistics(const std::string& name, const std::string& version,
                          ModelStatisticsResponse& response) {
    grpc::ClientContext context;
    ModelStatisticsRequest request;
    request.set_name(name);
    request.set_version(version);
    return stub_->ModelStatistics(&context, request, &response);
  }

  inference::ModelStatistics OfTokensVersion2() {
    ModelStatisticsResponse response;
    EXPECT_TRUE(Statistics("tokens", "2", response).ok());
    EXPECT_EQ(response.model_stats_size(), 1);
    return response.model_stats(0);
  }
};

TEST_F(InferenceStatisticsTest, AreFoundByAnotherNameOfTheModelToo) {
  for (const std::string name : {"tokens", "org/tokens"}) {
    ModelStatisticsResponse response;
    EXPECT_TRUE(Statistics(name, "", response).ok());
    ASSERT_EQ(response.model_stats_size(), 2) << name;
    EXPECT_EQ(response.model_stats(0).name(), "tokens");
  }
}

TEST_F(InferenceStatisticsTest, CountRequestsSequencesAndPassesOfBothProtocols) {
  const inference::ModelStatistics before = OfTokensVersion2();
  EXPECT_EQ(before.inference_count(), 0U);
  EXPECT_EQ(before.last_inference(), 0U);
  Infer(TwoSequences());
  Infer(TwoSequences());
  EmbeddingClient client(server_.client_options());
  EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());

  const inference::ModelStatistics after = OfTokensVersion2();
  EXPECT_EQ(after.name(), "tokens");
  EXPECT_EQ(after.version(), "2");
  EXPECT_EQ(after.inference_count(), 5U);
  EXPECT_GE(after.execution_count(), 3U);
  EXPECT_GT(after.last_inference(), 0U);
  const inference::InferStatistics& requests = after.inference_stats();
  for (const auto& duration : {requests.success(), requests.queue(), requests.compute_input(),
                               requests.compute_infer(), requests.compute_output()}) {
    EXPECT_EQ(duration.count(), 3U);
    EXPECT_LE(duration.ns(), requests.success().ns());
  }
  EXPECT_GT(requests.success().ns(), 0U);
  EXPECT_GT(requests.compute_infer().ns(), 0U);
  EXPECT_EQ(requests.fail().count(), 0U);
  uint64_t passes = 0;
  uint64_t sequences = 0;
  for (const auto& batch : after.batch_stats()) {
    passes += batch.compute_infer().count();
    sequences += batch.compute_infer().count() * batch.batch_size();
  }
  EXPECT_EQ(passes, after.execution_count());
  EXPECT_EQ(sequences, 5U);
}

TEST_F(InferenceStatisticsTest, CountWhatFailed) {
  ModelInferResponse response;
  ModelInferRequest faulty = TwoSequences();
  faulty.mutable_inputs(0)->set_name("nobody");
  EXPECT_FALSE(Infer(faulty, response).ok());
  server_.tokens().FailNext(absl::InternalError("broken"), 3);  // the batch, and each half of it
  EXPECT_FALSE(Infer(TwoSequences(), response).ok());
  EmbeddingClient client(server_.client_options());
  EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {kTestVocabulary})})).ok());
  const inference::ModelStatistics after = OfTokensVersion2();
  EXPECT_EQ(after.inference_stats().fail().count(), 3U);
  EXPECT_EQ(after.inference_stats().success().count(), 0U);
  EXPECT_EQ(after.inference_count(), 0U);
}

// The counts are compared, because perf_analyzer gives up if they ever differ between two answers.
TEST_F(InferenceStatisticsTest, HaveEqualCountsAtEveryMoment) {
  std::atomic<bool> stop = false;
  std::thread caller([&] {
    while (!stop) Infer(TwoSequences());
  });
  uint64_t last = 0;
  while (last < 100) {
    const inference::InferStatistics now = OfTokensVersion2().inference_stats();
    EXPECT_GE(now.success().count(), last);
    last = now.success().count();
    EXPECT_EQ(now.queue().count(), last);
    EXPECT_EQ(now.compute_input().count(), last);
    EXPECT_EQ(now.compute_infer().count(), last);
    EXPECT_EQ(now.compute_output().count(), last);
  }
  stop = true;
  caller.join();
}

TEST_F(InferenceStatisticsTest, AreOfAllModelsIfNoneIsNamed) {
  ModelStatisticsResponse response;
  EXPECT_TRUE(Statistics("", "", response).ok());
  EXPECT_EQ(response.model_stats_size(), 3);
  EXPECT_TRUE(Statistics("tokens", "", response).ok());
  ModelStatisticsResponse padded;
  EXPECT_TRUE(Statistics("tokens", "02", padded).ok());  // it is a number
  EXPECT_EQ(padded.model_stats_size(), 1);
  EXPECT_EQ(response.model_stats_size(), 2);
  EXPECT_EQ(Statistics("nobody", "", response).error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace linserve
