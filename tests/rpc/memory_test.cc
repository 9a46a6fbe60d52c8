#include <grpcpp/grpcpp.h>

#include "inference/grpc_service.pb.h"
#include "rpc/raw_call.h"
#include "support/fakes/failing_allocations.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

// Makes a batch of so many sequences of kTestLongest tokens, a byte each.
std::string InferWire(int64_t sequences) {
  inference::ModelInferRequest request;
  request.set_model_name("tokens");
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.set_datatype("UINT8");
  input.add_shape(sequences);
  input.add_shape(kTestLongest);
  request.add_raw_input_contents(std::string(static_cast<size_t>(sequences * kTestLongest), '\1'));
  return request.SerializeAsString();
}

// Makes such a request of one sequence, in a field that takes eight bytes for a token.
std::string TypedInferWire(int tokens) {
  inference::ModelInferRequest request;
  request.set_model_name("tokens");
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.set_datatype("INT64");
  input.add_shape(1);
  input.add_shape(tokens);
  input.mutable_contents()->mutable_int64_contents()->Resize(tokens, 1);
  return request.SerializeAsString();
}

std::string EmbedWire(int ids) {
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->mutable_token_ids()->Resize(ids, 1);
  return request.SerializeAsString();
}

// Expects that the call ends with RESOURCE_EXHAUSTED where allocations from `least` bytes on fail.
void ExpectRefused(const TestServer& server, const std::string& method, const std::string& wire,
                   size_t least) {
  {
    const FailingAllocations failing(least);
    const grpc::Status status = RawCall(server, method, wire).Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
        << method << ": " << status.error_message();
    EXPECT_GT(failing.failed(), 0U) << method;
  }
  EXPECT_TRUE(server.WaitFor("linserve_inflight_bytes", 0));
  EXPECT_TRUE(server.WaitFor(InFlight(method.substr(method.rfind('/') + 1)), 0));
  EXPECT_TRUE(Serves(server));
}

TEST(Memory, ThatIsMissingToDecodeAMessageIsTheCallersStatus) {
  const TestServer server;
  constexpr size_t kLeast = 2 << 20;  // more than the messages have on the wire
  ExpectRefused(server, kEmbedRpc, EmbedWire(1 << 20), kLeast);
  ExpectRefused(server, kEmbedStreamRpc, EmbedWire(1 << 20), kLeast);
  ExpectRefused(server, kInferRpc, TypedInferWire(1 << 20), kLeast);
  ExpectRefused(server, kInferStreamRpc, TypedInferWire(1 << 20), kLeast);
}

TEST(Memory, ThatIsMissingToConvertAMessageIsTheCallersStatus) {
  const TestServer server;
  // The ids are decoded into less than half of what they are converted to.
  ExpectRefused(server, kEmbedRpc, EmbedWire(200'000), 1'500'000);
}

TEST(Memory, ThatIsMissingToJoinAnAnswerIsTheCallersStatus) {
  const TestServer server;
  ExpectRefused(server, kInferRpc, InferWire(40), 8 << 20);
}

}  // namespace
}  // namespace linserve
