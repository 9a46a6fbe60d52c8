#include "client/library/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Sequence Encoded(TensorMap inputs) {
  EmbedCall call;
  call.sequences.push_back({"id", std::move(inputs)});
  return EncodeRequest(call).sequences(0);
}

TEST(Request, CarriesTheWholeCall) {
  EmbedCall call;
  call.request_id = "r";
  call.model = "m";
  call.version = 3;
  call.options = {{"a", "b"}, Pooling::kLast, true, DType::kBF16};
  call.rows_per_chunk = 9;
  call.sequences = {{"s", {{"x", Tensor::FromInts({1}, {1})}}}};
  const v1::EmbedRequest request = EncodeRequest(call);
  EXPECT_EQ(request.request_id(), "r");
  EXPECT_EQ(request.model(), "m");
  EXPECT_EQ(request.version(), 3);
  EXPECT_THAT(request.options().outputs(), ElementsAre("a", "b"));
  EXPECT_EQ(request.options().pooling(), v1::POOLING_LAST);
  EXPECT_TRUE(request.options().normalize());
  EXPECT_EQ(request.options().dtype(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(request.options().rows_per_chunk(), 9U);
  EXPECT_EQ(request.sequences(0).id(), "s");
}

TEST(Request, SendsTokensInTheShortForm) {
  const v1::Sequence sequence = Encoded({{"x", Tensor::FromInts({3}, {0, 7, 4294967295})}});
  EXPECT_THAT(sequence.token_ids(), ElementsAre(0, 7, 4294967295));
  EXPECT_FALSE(sequence.has_x());
}

TEST(Request, LeavesTokensThatDoNotFitToTheServer) {
  for (const Tensor& x : {Tensor::FromInts({1}, {-1}), Tensor::FromInts({1}, {4294967296}),
                          Tensor::FromInts({1, 1}, {1}), Tensor::FromInts({0}, {})}) {
    const v1::Sequence sequence = Encoded({{"x", x}});
    EXPECT_EQ(sequence.token_ids_size(), 0);
    EXPECT_EQ(sequence.x().dtype(), v1::DATA_TYPE_I64);
    EXPECT_EQ(sequence.x().data().size(), x.byte_size());
  }
}

TEST(Request, SendsFloatsAsBytesAndOtherInputsByName) {
  const Tensor x = Tensor::FromFloats({2, 1}, {1, 2});
  const v1::Sequence sequence = Encoded({{"x", x}, {"context", Tensor::FromInts({2}, {3, 4})}});
  EXPECT_EQ(sequence.x().dtype(), v1::DATA_TYPE_F32);
  EXPECT_THAT(sequence.x().shape(), ElementsAre(2, 1));
  EXPECT_EQ(sequence.x().data(), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  EXPECT_EQ(sequence.inputs().at("context").dtype(), v1::DATA_TYPE_I64);
}

TEST(Request, HoldsTheChosenSequencesOnly) {
  EmbedCall call;
  for (const char* id : {"a", "b", "c"}) call.sequences.push_back({id, {}});
  const v1::EmbedRequest request = EncodeRequest(call, {2, 0});
  ASSERT_EQ(request.sequences_size(), 2);
  EXPECT_EQ(request.sequences(0).id(), "c");
  EXPECT_EQ(request.sequences(1).id(), "a");
}

TEST(Response, WhoseBytesDoNotFitItsShapeIsRefused) {
  struct Case {
    v1::DataType dtype;
    std::vector<int64_t> shape;
    size_t bytes;
  };
  for (const Case& bad : std::vector<Case>{{v1::DATA_TYPE_F32, {2}, 7},
                                           {v1::DATA_TYPE_F32, {-1}, 4},
                                           {v1::DATA_TYPE_F32, {1LL << 62, 4}, 0},
                                           {v1::DATA_TYPE_UNSPECIFIED, {1}, 4},
                                           {static_cast<v1::DataType>(99), {1}, 4}}) {
    v1::EmbedResponse response;
    response.mutable_rows()->set_dtype(bad.dtype);
    for (int64_t size : bad.shape) response.mutable_rows()->add_shape(size);
    response.mutable_rows()->set_data(std::string(bad.bytes, '\0'));
    const auto chunk = DecodeChunk(std::move(response));
    EXPECT_EQ(chunk.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(chunk.status().ToString(), HasSubstr("the server sent"));
  }
}

TEST(Status, HasTheCodeAndTheTextOfTheCalls) {
  for (int code = 1; code <= 16; ++code) {
    EXPECT_EQ(ToAbsl(grpc::Status(static_cast<grpc::StatusCode>(code), "why")),
              absl::Status(static_cast<absl::StatusCode>(code), "why"));
  }
  EXPECT_TRUE(ToAbsl(grpc::Status::OK).ok());
}

}  // namespace
}  // namespace linserve
