#include "rpc/messages/wire.h"

#include <numeric>

#include "inference/grpc_service.pb.h"
#include "rpc/parsed.h"
#include "rpc/raw_call.h"
#include "support/test_server.h"

namespace linserve {
namespace {

Tensor Counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::FromFloats({count}, values);
}

std::string BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size()};
}

WireMessage EmbedResponseWith(const Tensor& tensor) {
  v1::Tensor meta;
  meta.set_dtype(v1::DATA_TYPE_F32);
  WireMessage rows;
  rows.Add(meta);
  rows.AddBytes(v1::Tensor::kDataFieldNumber, tensor);
  v1::EmbedResponse response;
  response.set_request_id("r");
  WireMessage wire;
  wire.Add(response);
  wire.AddMessage(v1::EmbedResponse::kRowsFieldNumber, std::move(rows));
  return wire;
}

TEST(WireMessage, IsWhatProtobufWouldHaveWritten) {
  for (const int64_t count : {1, 31, 32, 1023, 1024, 4096, 100000}) {
    const Tensor tensor = Counting(count);
    v1::EmbedResponse expected;
    expected.set_request_id("r");
    expected.mutable_rows()->set_dtype(v1::DATA_TYPE_F32);
    expected.mutable_rows()->set_data(BytesOf(tensor));
    WireMessage wire = EmbedResponseWith(tensor);
    EXPECT_EQ(wire.size(), expected.ByteSizeLong());
    const grpc::ByteBuffer bytes = std::move(wire).Take();
    EXPECT_EQ(bytes.Length(), expected.ByteSizeLong());
    EXPECT_EQ(Parsed<v1::EmbedResponse>(bytes).SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(WireMessage, HoldsSeveralTensorsInTheirOrder) {
  WireMessage wire;
  inference::ModelInferResponse head;
  head.set_id("x");
  wire.Add(head);
  for (const int64_t count : {3, 5000, 0, 7, 2000}) {
    wire.AddBytes(inference::ModelInferResponse::kRawOutputContentsFieldNumber, Counting(count));
  }
  const auto parsed = Parsed<inference::ModelInferResponse>(std::move(wire).Take());
  EXPECT_EQ(parsed.id(), "x");
  ASSERT_EQ(parsed.raw_output_contents_size(), 5);
  EXPECT_EQ(parsed.raw_output_contents(1), BytesOf(Counting(5000)));
  EXPECT_EQ(parsed.raw_output_contents(2), "");
  EXPECT_EQ(parsed.raw_output_contents(4), BytesOf(Counting(2000)));
}

TEST(WireMessage, SharesTheBytesOfLargeTensorsUntilItIsSent) {
  auto owner = std::make_shared<std::vector<float>>(100000, 1.0F);
  const std::weak_ptr<std::vector<float>> alive = owner;
  grpc::ByteBuffer bytes =
      EmbedResponseWith(Tensor(DType::kF32, {100000}, owner->data(), owner)).Take();
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(bytes.Dump(&slices).ok());
  EXPECT_EQ(static_cast<const void*>(slices.back().begin()), owner->data());
  owner.reset();
  slices.clear();
  EXPECT_FALSE(alive.expired());
  bytes.Clear();
  EXPECT_TRUE(alive.expired());
}

TEST(Parse, RefusesWhatIsNoSuchMessage) {
  const grpc::Slice slice(std::string("\xff\xff\xff"));
  grpc::ByteBuffer bytes(&slice, 1);
  v1::EmbedRequest request;
  EXPECT_THAT(Parse(bytes, request), IsStatus(absl::StatusCode::kInvalidArgument,
                                              "cannot be read as linserve.v1.EmbedRequest"));
  EXPECT_FALSE(bytes.Valid());
}

class GarbageTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GarbageTest, IsTheCallersFault) {
  const TestServer server;
  const grpc::Status status = RawCall(server, GetParam(), "\xff\xff\xff").Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("the message cannot be read as "));
  const std::string rpc = GetParam().substr(GetParam().rfind('/') + 1);
  EXPECT_TRUE(server.WaitFor(
      R"(linserve_requests_total{code="INVALID_ARGUMENT",model="",rpc=")" + rpc + R"("})", 1));
  EXPECT_TRUE(server.WaitFor(InFlight(rpc), 0));
  EXPECT_EQ(server.Scrape()[R"(linserve_grpc_message_bytes_sum{direction="received",rpc=")" + rpc +
                            R"("})"],
            3);
  EXPECT_TRUE(Serves(server));
}

INSTANTIATE_TEST_SUITE_P(Rpcs, GarbageTest,
                         ::testing::Values("/linserve.v1.EmbeddingService/Embed",
                                           "/linserve.v1.EmbeddingService/EmbedStream",
                                           "/inference.GRPCInferenceService/ModelInfer",
                                           "/inference.GRPCInferenceService/ModelStreamInfer"));

}  // namespace
}  // namespace linserve
