#include "rpc/embedding/convert.h"

#include <cstring>

#include "rpc/calls/grpc_status.h"
#include "rpc/parsed.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

v1::Tensor Wire(v1::DataType dtype, const std::vector<int64_t>& shape, const std::string& data) {
  v1::Tensor message;
  message.set_dtype(dtype);
  for (int64_t size : shape) message.add_shape(size);
  message.set_data(data);
  return message;
}

TEST(Convert, TensorsViewTheMessagesBytesAndKeepThemAlive) {
  auto message = std::make_shared<v1::Tensor>(Wire(v1::DATA_TYPE_I16, {2, 2}, "abcdefgh"));
  const void* bytes = message->data().data();
  auto tensor = ToTensor(*message, "x", message);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  message.reset();
  EXPECT_EQ(tensor->bytes(), bytes);
  EXPECT_EQ(std::memcmp(tensor->bytes(), "abcdefgh", 8), 0);
  EXPECT_EQ(tensor->dtype(), DType::kI16);
  EXPECT_EQ(tensor->shape(), (Shape{2, 2}));
}

TEST(Convert, EveryDTypeGoesThereAndBack) {
  for (int type = v1::DATA_TYPE_BOOL; type <= v1::DATA_TYPE_F64; ++type) {
    const auto dtype = static_cast<DType>(type - 1);
    const auto message = Parsed<v1::Tensor>(ToWire(Tensor::Allocate(dtype, {3}).first).Take());
    EXPECT_EQ(message.dtype(), type);
    EXPECT_EQ(v1::DataType_Name(message.dtype()), "DATA_TYPE_" + std::string(Name(dtype)));
    const auto tensor = ToTensor(message, "x", nullptr);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), dtype);
    EXPECT_EQ(tensor->byte_size(), 3 * ByteSize(dtype));
  }
}

TEST(Convert, ScalarsHaveAsManyBytesAsTheySay) {
  EXPECT_TRUE(ToTensor(Wire(v1::DATA_TYPE_F32, {}, "abcd"), "x", nullptr).ok());
  EXPECT_THAT(ToTensor(Wire(v1::DATA_TYPE_F32, {}, ""), "x", nullptr),
              IsInvalid("input 'x': 0 bytes of data, expected 4 for F32 of shape []"));
}

// No byte stands for such axes, so that nothing else would bound what is made of them.
TEST(Convert, TensorsWithoutElementsAreRefused) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{0}, {0, 3}, {INT64_MAX, 0}, {0, INT64_MAX}, {1, 0, INT64_MAX}}) {
    EXPECT_THAT(ToTensor(Wire(v1::DATA_TYPE_F32, shape, ""), "x", nullptr),
                IsInvalid("input 'x': the sequence is empty"))
        << ToString(Shape(shape));
  }
}

TEST(Convert, ShapesThatNoMemoryHoldsAreRefused) {
  const int64_t huge = int64_t{1} << 62;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{huge, huge}, {huge, 4, 0}, {0, huge, huge}, {-1}, {-2, -2}}) {
    EXPECT_FALSE(ToTensor(Wire(v1::DATA_TYPE_F32, shape, "abcd"), "x", nullptr).ok())
        << ToString(Shape(shape));
  }
}

TEST(Convert, TheThreeFormsOfXAreOneInput) {
  const std::string bytes("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
  const v1::Tensor tensor = Wire(v1::DATA_TYPE_I64, {2}, bytes);
  v1::Sequence ids;
  ids.add_token_ids(1);
  ids.add_token_ids(2);
  v1::Sequence x;
  *x.mutable_x() = tensor;
  v1::Sequence inputs;
  (*inputs.mutable_inputs())["x"] = tensor;
  for (const v1::Sequence& sequence : {ids, x, inputs}) {
    const auto item = ToItem(sequence, {}, nullptr);
    ASSERT_TRUE(item.ok()) << item.status();
    ASSERT_EQ(item->inputs.size(), 1U);
    const Tensor& tokens = item->inputs.at("x");
    EXPECT_EQ(tokens.shape(), Shape{2});
    EXPECT_EQ(std::memcmp(tokens.bytes(), bytes.data(), 16), 0);
  }
}

TEST(Convert, AChunkOfASessionIsTakenOver) {
  v1::Sequence message;
  message.add_token_ids(1);
  EXPECT_EQ(ToItem(message, {}, nullptr)->chunk, nullptr);
  message.mutable_session()->set_id("a");
  message.mutable_session()->set_start(true);
  message.mutable_session()->set_state("saved");
  const auto item = ToItem(message, {}, nullptr);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->chunk->id, "a");
  EXPECT_TRUE(item->chunk->start);
  EXPECT_FALSE(item->chunk->end);
  EXPECT_FALSE(item->chunk->save);
  EXPECT_EQ(item->chunk->state, "saved");
  EXPECT_FALSE(item->chunk->position.has_value());
  // A position that no session can have is taken as the largest one.
  message.mutable_session()->set_position(UINT64_MAX);
  EXPECT_EQ(ToItem(message, {}, nullptr)->chunk->position, INT64_MAX);
}

TEST(Convert, AChunkWithoutAUsableIdOrWithATextIsRefused) {
  for (const std::string& id : {std::string(), std::string(129, 'a'), std::string("linserve:7")}) {
    v1::Sequence message;
    message.add_token_ids(1);
    message.mutable_session()->set_id(id);
    EXPECT_THAT(ToItem(message, {}, nullptr), IsInvalid("the id of a session")) << id;
  }
  v1::Sequence message;
  message.mutable_session()->set_id("a");
  message.set_text("hello");
  EXPECT_THAT(ToItem(message, {}, nullptr), IsInvalid("takes token ids"));
}

TEST(Convert, AFaultyChunkIsKnownByItsSession) {
  v1::Sequence message;
  message.mutable_session()->set_id("a");
  (*message.mutable_inputs())["mask"] = Wire(v1::DATA_TYPE_BOOL, {2}, "a");
  const auto item = ToItem(message, {}, nullptr);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->chunk->id, "a");
  EXPECT_THAT(item->fault, IsInvalid("input 'mask': 1 bytes of data"));
}

TEST(Convert, FaultsOfAnInputNameIt) {
  v1::Sequence sequence;
  (*sequence.mutable_inputs())["mask"] = Wire(v1::DATA_TYPE_BOOL, {2}, "a");
  EXPECT_THAT(ToItem(sequence, {}, nullptr), IsInvalid("input 'mask': 1 bytes of data"));
}

TEST(Convert, OptionsAreTakenOver) {
  v1::EmbedOptions message;
  message.add_outputs("z");
  message.set_pooling(v1::POOLING_MAX);
  message.set_normalize(true);
  message.set_dtype(v1::DATA_TYPE_BF16);
  const auto options = ToOptions(message, Pooling::kMean);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->outputs, ElementsAre("z"));
  EXPECT_EQ(options->pooling, Pooling::kMax);
  EXPECT_TRUE(options->normalize);
  EXPECT_EQ(options->dtype, DType::kBF16);
}

TEST(Convert, UnsetOptionsAreTheModels) {
  const auto options = ToOptions({}, Pooling::kMean);
  ASSERT_TRUE(options.ok()) << options.status();
  OutputOptions expected;
  expected.pooling = Pooling::kMean;
  EXPECT_EQ(*options, expected);
}

TEST(Convert, EveryPoolingHasItsCounterpart) {
  const std::vector<std::pair<v1::Pooling, Pooling>> pairs = {{v1::POOLING_NONE, Pooling::kNone},
                                                              {v1::POOLING_MEAN, Pooling::kMean},
                                                              {v1::POOLING_CLS, Pooling::kCls},
                                                              {v1::POOLING_LAST, Pooling::kLast},
                                                              {v1::POOLING_MAX, Pooling::kMax}};
  for (const auto& [wire, pooling] : pairs) {
    v1::EmbedOptions message;
    message.set_pooling(wire);
    EXPECT_EQ(ToOptions(message, Pooling::kNone)->pooling, pooling);
  }
}

TEST(Convert, OptionsThatAreNoneAreRefused) {
  v1::EmbedOptions message;
  message.set_pooling(static_cast<v1::Pooling>(-1));
  EXPECT_THAT(ToOptions(message, Pooling::kNone), IsInvalid("options.pooling is -1"));
  message.set_pooling(v1::POOLING_NONE);
  for (const v1::DataType dtype : {v1::DATA_TYPE_I64, v1::DATA_TYPE_F64, v1::DATA_TYPE_BOOL}) {
    message.set_dtype(dtype);
    EXPECT_THAT(ToOptions(message, Pooling::kNone), IsInvalid("expected F32, F16, BF16 or I8"));
  }
}

TEST(Convert, StatusesKeepTheirCodeAndMessage) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  const grpc::Status status = ToGrpcStatus(absl::ResourceExhaustedError("full"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "full");
}

}  // namespace
}  // namespace linserve
