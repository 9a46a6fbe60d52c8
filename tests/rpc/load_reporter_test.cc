#include "rpc/load_reporter.h"

#include <grpcpp/grpcpp.h>

#include "batching/fake_clock.h"
#include "rpc/test_server.h"
#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace linserve {
namespace {

using xds::data::orca::v3::OrcaLoadReport;

OrcaLoadReport Parsed(const std::string& bytes) {
  OrcaLoadReport report;
  EXPECT_TRUE(report.ParseFromString(bytes));
  return report;
}

TEST(LoadReporter, CountsRequestsASecond) {
  TestServer server;
  FakeClock clock;
  LoadReporter reporter(server.repository(), clock);
  EmbeddingClient client(server.client_options());
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());
  }
  EXPECT_FALSE(client.Embed(CallOf("tokens", {})).ok());
  EXPECT_EQ(Parsed(reporter.Report()).rps_fractional(), 0);  // none is due yet
  clock.Advance(std::chrono::seconds(2));
  const OrcaLoadReport report = Parsed(reporter.Report());
  EXPECT_DOUBLE_EQ(report.rps_fractional(), 3.5);
  EXPECT_DOUBLE_EQ(report.eps(), 0.5);
  EXPECT_GT(report.application_utilization(), 0);
  EXPECT_GT(report.mem_utilization(), 0);
  EXPECT_LT(report.mem_utilization(), 1);
  clock.Advance(std::chrono::seconds(2));
  EXPECT_EQ(Parsed(reporter.Report()).rps_fractional(), 0);
}

TEST(LoadReporter, SpeaksInTheTrailersOfEveryKindOfCall) {
  TestServer server;
  const auto stub = server.NewStub();
  const auto trailer = [](const grpc::ClientContext& context) {
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find("endpoint-load-metrics-bin");
    EXPECT_NE(found, metadata.end());
    return Parsed({found->second.data(), found->second.size()});
  };
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  v1::EmbedResponse response;
  grpc::ClientContext call;
  const auto reader = stub->Embed(&call, request);
  while (reader->Read(&response)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_GT(trailer(call).mem_utilization(), 0);
  EXPECT_TRUE(trailer(call).named_metrics().contains("queue_delay_seconds"));
  grpc::ClientContext streamed;
  const auto stream = stub->EmbedStream(&streamed);
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(stream->WritesDone());
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_GT(trailer(streamed).mem_utilization(), 0);
}

}  // namespace
}  // namespace linserve
