#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "linserve/v1/embedding.grpc.pb.h"
#include "support/programs.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Makes a repository of one model, "bytes".
class DrainTest : public ::testing::Test {
 protected:
  DrainTest() { InitModel(directory_.File("models/bytes")); }

  std::string repository() const { return directory_.File("models"); }

  // Adds a model that takes a minute for one long sequence, and looks up from it only at its end.
  // If it is to be warmed up, it takes as long to be loaded.
  void AddSlowModel(bool warm) const {
    const std::string path = repository() + "/slow";
    // Windows of so many rows are not computed by blocks, between which a pass can be given up.
    const Outcome made =
        RunLinserve({"init", "--architecture", "performer_pytorch.PerformerLM", "--params",
                     R"({"num_tokens": 9, "dim": 64, "depth": 1, "heads": 4, "max_seq_len": 200000,
             "causal": true, "local_attn_heads": 4, "local_window_size": 65536})",
                     "--output", path});
    ASSERT_EQ(made.code, 0) << made.err;
    std::string config = ReadAll(path + "/config.json");
    config.insert(config.find('{') + 1,
                  R"("serving": {"threads": 1, "max_batch_tokens": 200000, "warmup": )" +
                      std::string(warm ? "true}," : "false},"));
    WriteAll(path + "/config.json", config);
  }

  TempDir directory_;
};

std::shared_ptr<grpc::Channel> ChannelTo(const RunningServer& server) {
  return grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials());
}

TEST_F(DrainTest, SigtermDrainsAndExitsWithSuccess) {
  RunningServer server(repository());
  EmbeddingClient client(server.client_options());
  const auto stream = client.OpenStream();
  EXPECT_TRUE(server.WaitFor("linserve_open_streams{rpc=\"EmbedStream\"}", 1));
  EXPECT_EQ(server.Stop(), 0);
  EXPECT_THAT(server.log(), HasSubstr("\"message\":\"drained\""));
  EXPECT_THAT(stream->Finish(), IsStatus(absl::StatusCode::kUnavailable, "draining"));
}

TEST_F(DrainTest, SigintDrainsToo) {
  RunningServer server(repository());
  server.process().Signal(SIGINT);
  EXPECT_EQ(server.process().Wait(), 0) << server.log();
}

// Acts as a caller that asks for much and reads nothing: a drain waits for it.
class StalledCaller {
 public:
  explicit StalledCaller(const RunningServer& server)
      : stub_(v1::EmbeddingService::NewStub(
            grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()))) {
    v1::EmbedRequest request;
    for (int i = 0; i < 2000; ++i) {
      request.add_sequences()->mutable_token_ids()->Resize(64, 1);
    }
    reader_ = stub_->Embed(&context_, request);
    v1::EmbedResponse response;
    EXPECT_TRUE(reader_->Read(&response));
  }
  ~StalledCaller() {
    context_.TryCancel();
    v1::EmbedResponse response;
    while (reader_->Read(&response)) {
    }
    reader_->Finish().ok();
  }

 private:
  std::unique_ptr<v1::EmbeddingService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::EmbedResponse>> reader_;
};

TEST_F(DrainTest, ASecondSignalEndsADrainAtOnceUnlessItIsTheSameTwice) {
  RunningServer server(repository(), {"--drain-timeout-seconds", "3600"});
  StalledCaller caller(server);
  for (int i = 0; i < 3; ++i) server.process().Signal(SIGTERM);
  ASSERT_TRUE(server.process().WaitForOut("\"message\":\"draining\""));
  server.Get("/readyz", 503);
  server.process().Signal(SIGINT);
  EXPECT_EQ(server.process().Wait(), 128 + SIGINT);
  EXPECT_THAT(server.log(), Not(HasSubstr("\"message\":\"drained\"")));
}

TEST_F(DrainTest, ADrainGivesUpOnAStalledCallerInTime) {
  RunningServer server(repository(), {"--drain-timeout-seconds", "0.1"});
  StalledCaller caller(server);
  EXPECT_EQ(server.Stop(), 0) << server.log();
}

TEST_F(DrainTest, RefusesLoadsThatWaitAndAbandonsTheOneUnderWay) {
  RunningServer server(repository(),
                       {"--allow-model-control", "true", "--drain-timeout-seconds", "0.5"});
  AddSlowModel(/*warm=*/true);
  const auto stub = inference::GRPCInferenceService::NewStub(ChannelTo(server));
  std::vector<std::future<grpc::Status>> loads;
  for (int i = 0; i < 100; ++i) {
    loads.push_back(std::async(std::launch::async, [&stub] {
      grpc::ClientContext context;
      inference::RepositoryModelLoadRequest request;
      request.set_model_name("slow");
      inference::RepositoryModelLoadResponse response;
      return stub->RepositoryModelLoad(&context, request, &response);
    }));
  }
  ASSERT_TRUE(server.WaitFor("linserve_in_flight_requests{rpc=\"RepositoryModelLoad\"}", 100));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(server.Stop(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  for (auto& load : loads) {
    const grpc::Status status = load.get();
    EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
  }
  EXPECT_THAT(server.log(), HasSubstr("\"load_given_up\":true"));
}

TEST_F(DrainTest, EndsTheProcessFiveSecondsAfterItsTimeWhateverHangs) {
  AddSlowModel(/*warm=*/false);
  RunningServer server(repository(), {"--drain-timeout-seconds", "0.5"});
  const auto stub = v1::EmbeddingService::NewStub(ChannelTo(server));
  grpc::ClientContext context;
  v1::EmbedRequest request;
  request.set_model("slow");
  request.add_sequences()->mutable_token_ids()->Resize(200'000, 1);
  const auto reader = stub->Embed(&context, request);
  ASSERT_TRUE(
      server.WaitFor(R"(linserve_batches_total{model="slow",reason="full",version="1"})", 1));
  // A batch that is not computed yet would be given up: nothing else takes so much time.
  ASSERT_TRUE(WaitUntil([&] { return server.Scrape()["process_cpu_seconds_total"] > 4; }));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(server.Stop(), 1);
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_GT(took, std::chrono::seconds(5));
  EXPECT_LT(took, std::chrono::seconds(20));
  EXPECT_THAT(server.log(), HasSubstr("did not end in time"));
  v1::EmbedResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace linserve
