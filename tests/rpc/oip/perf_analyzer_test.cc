#include <map>
#include <thread>

#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using inference::ModelStatistics;

// Makes the calls that perf_analyzer makes, in its order, with the checks that its code makes of
// the answers (model_parser, inference_profiler). The program itself is run where it can be had.
class PerfAnalyzerTest : public InferTest {
 protected:
  template <typename Request, typename Response>
  Response Call(grpc::Status (inference::GRPCInferenceService::Stub::*method)(grpc::ClientContext*,
                                                                              const Request&,
                                                                              Response*),
                const Request& request) {
    grpc::ClientContext context;
    Response response;
    const grpc::Status status = ((*stub_).*method)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  ModelStatistics Statistics() {
    inference::ModelStatisticsRequest request;
    request.set_name("tokens");
    const auto response = Call(&Stub::ModelStatistics, request);
    // perf_analyzer takes the version that has served most of late, by its number.
    ModelStatistics found;
    for (const ModelStatistics& model : response.model_stats()) {
      EXPECT_GT(std::stoll(model.version()), 0);
      if (model.version() == "2") found = model;
    }
    EXPECT_EQ(found.name(), "tokens");
    return found;
  }

  using Stub = inference::GRPCInferenceService::Stub;
};

TEST_F(PerfAnalyzerTest, FindsWhatItChecksBeforeDuringAndAfterALoad) {
  inference::ModelMetadataRequest for_metadata;
  for_metadata.set_name("tokens");
  const auto metadata = Call(&Stub::ModelMetadata, for_metadata);
  inference::ModelConfigRequest for_config;
  for_config.set_name("tokens");
  const auto config = Call(&Stub::ModelConfig, for_config).config();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& tensor : metadata.inputs()) {
    shapes[tensor.name()] = {tensor.shape().begin(), tensor.shape().end()};
  }
  for (const auto& tensor : metadata.outputs()) {
    shapes[tensor.name()] = {tensor.shape().begin(), tensor.shape().end()};
  }
  // The metadata have a leading -1 for the batch, and the configuration has none.
  ASSERT_GT(config.max_batch_size(), 0);
  EXPECT_FALSE(config.model_transaction_policy().decoupled());
  EXPECT_NE(config.platform(), "ensemble");
  for (const auto& input : config.input()) {
    ASSERT_TRUE(shapes.contains(input.name())) << "no metadata found for input tensor";
    EXPECT_EQ(shapes[input.name()].at(0), -1);
    EXPECT_EQ(shapes[input.name()].size(), static_cast<size_t>(input.dims_size()) + 1);
    EXPECT_GT(input.dims_size(), 0) << "unable to set shape for the input";
    EXPECT_FALSE(input.optional()) << "gets generated data";
  }
  for (const auto& output : config.output()) {
    ASSERT_TRUE(shapes.contains(output.name())) << "no metadata found for output tensor";
  }
  const auto server = Call(&Stub::ServerMetadata, inference::ServerMetadataRequest());
  EXPECT_THAT(server.extensions(), ::testing::Contains("statistics"));

  const ModelStatistics before = Statistics();
  constexpr int kRequests = 40;
  const auto load = [&](const std::string& thread) {
    for (int i = 0; i < kRequests; ++i) {
      ModelInferRequest request = TwoSequences();
      request.set_id(thread + std::to_string(i));
      // perf_analyzer's library sends this with every request, streamed or not.
      (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
      const ModelInferResponse response = Infer(request);
      EXPECT_EQ(response.id(), request.id());
      EXPECT_EQ(response.raw_output_contents_size(), response.outputs_size());
    }
  };
  std::thread other(load, "b");
  load("a");
  other.join();
  const ModelStatistics after = Statistics();

  const auto grew = [&](auto member) {
    return (after.inference_stats().*member)().count() -
           (before.inference_stats().*member)().count();
  };
  using inference::InferStatistics;
  EXPECT_EQ(grew(&InferStatistics::success), 2U * kRequests);
  EXPECT_EQ(grew(&InferStatistics::queue), 2U * kRequests)
      << "failed to find the requested model version";
  EXPECT_EQ(grew(&InferStatistics::compute_input), grew(&InferStatistics::compute_infer))
      << "Server side statistics compute counts must be the same";
  EXPECT_EQ(grew(&InferStatistics::compute_output), grew(&InferStatistics::compute_infer));
  EXPECT_EQ(after.inference_count() - before.inference_count(), 4U * kRequests);
  EXPECT_GT(after.execution_count(), before.execution_count());
  EXPECT_LE(after.execution_count() - before.execution_count(), 2U * kRequests);
}

}  // namespace
}  // namespace linserve
