#include "rpc/messages/decoded_size.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <random>
#include <set>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "inference/grpc_service.pb.h"
#include "linserve/v1/embedding.pb.h"
#include "rpc/counted.h"
#include "support/test_files.h"
#include "tei/v1/tei.pb.h"

namespace linserve {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using inference::ModelInferRequest;

constexpr int64_t kSequences = 100;

grpc::ByteBuffer BytesOf(const std::string& wire) {
  const grpc::Slice slice(wire);
  return {&slice, 1};
}

template <typename Type>
absl::StatusOr<int64_t> Counted(const std::string& wire) {
  return DecodedBytes(BytesOf(wire), MessagePlan::Of<Type>(), {.sequences = kSequences});
}

// Fills a message at random, within its bounds.
class Filler {
 public:
  explicit Filler(uint32_t seed) : random_(seed) {}

  void Fill(Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const int most = field.message_type() == nullptr ? 50 : 5;
      const int times = field.is_repeated() ? Below(most) : Below(2);
      for (int n = 0; n < times; ++n) Set(message, field);
    }
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }
  std::string Text() { return std::string(static_cast<size_t>(Below(100)), 'a'); }

  // Sets the field, or adds to it.
  void Set(Message& message, const FieldDescriptor& field) {
    const auto& reflection = *message.GetReflection();
    const bool repeated = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(repeated ? *reflection.AddMessage(&message, &field)
                             : *reflection.MutableMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_STRING:
        return repeated ? reflection.AddString(&message, &field, Text())
                        : reflection.SetString(&message, &field, Text());
      case FieldDescriptor::CPPTYPE_BOOL:
        return repeated ? reflection.AddBool(&message, &field, true)
                        : reflection.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_INT32:
        return repeated ? reflection.AddInt32(&message, &field, Below(1000))
                        : reflection.SetInt32(&message, &field, Below(1000));
      case FieldDescriptor::CPPTYPE_INT64:
        return repeated ? reflection.AddInt64(&message, &field, Below(1000))
                        : reflection.SetInt64(&message, &field, Below(1000));
      case FieldDescriptor::CPPTYPE_UINT32:
        return repeated ? reflection.AddUInt32(&message, &field, random_() % 1000)
                        : reflection.SetUInt32(&message, &field, random_() % 1000);
      case FieldDescriptor::CPPTYPE_UINT64:
        return repeated ? reflection.AddUInt64(&message, &field, random_())
                        : reflection.SetUInt64(&message, &field, random_());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return repeated ? reflection.AddFloat(&message, &field, 1)
                        : reflection.SetFloat(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return repeated ? reflection.AddDouble(&message, &field, 1)
                        : reflection.SetDouble(&message, &field, 1);
      default:
        return reflection.SetEnumValue(&message, &field, Below(5));
    }
  }

  std::minstd_rand random_;
};

template <typename Type>
class CountTest : public testing::Test {};
using Requests = testing::Types<v1::EmbedRequest, v1::GenerateRequest, ModelInferRequest,
                                inference::RepositoryModelLoadRequest, tei::v1::EmbedRequest,
                                tei::v1::DecodeRequest>;
TYPED_TEST_SUITE(CountTest, Requests);

TYPED_TEST(CountTest, IsNoLessThanProtobufAllocates) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    TypeParam message;
    Filler(seed).Fill(message);
    const grpc::ByteBuffer bytes = BytesOf(message.SerializeAsString());
    const auto counted = CountedBytes<TypeParam>(bytes);
    ASSERT_TRUE(counted.ok()) << counted.status() << ", seed " << seed;
    EXPECT_GE(*counted, *DecodedBytes<TypeParam>(bytes)) << "seed " << seed;
    EXPECT_LT(*counted, 8 * *DecodedBytes<TypeParam>(bytes) + 4096) << "seed " << seed;
  }
}

TYPED_TEST(CountTest, DoesNotDependOnHowTheBytesLie) {
  TypeParam message;
  Filler(7).Fill(message);
  const std::string wire = message.SerializeAsString();
  const auto whole = CountedBytes<TypeParam>(BytesOf(wire));
  std::vector<grpc::Slice> slices;
  for (const char& byte : wire) slices.emplace_back(&byte, 1);
  EXPECT_EQ(*CountedBytes<TypeParam>(grpc::ByteBuffer(slices.data(), slices.size())), *whole);
}

// Bytes that are no message may be counted as anything, but whoever decodes them fails.
TYPED_TEST(CountTest, OfMutilatedBytesIsNoLessThanProtobufAllocates) {
  std::minstd_rand random(3);
  TypeParam message;
  Filler(5).Fill(message);
  const std::string whole = message.SerializeAsString();
  for (int i = 0; i < 20000; ++i) {
    std::string wire = whole.substr(0, random() % (whole.size() + 1));
    for (uint32_t flips = random() % 4; flips > 0 && !wire.empty(); --flips) {
      wire[random() % wire.size()] ^= static_cast<char>(1u << random() % 8);
    }
    const auto counted = CountedBytes<TypeParam>(BytesOf(wire));
    const auto decoded = DecodedBytes<TypeParam>(BytesOf(wire));
    if (!counted.ok() || !decoded) continue;
    ASSERT_GE(*counted, *decoded) << "mutation " << i;
  }
}

// Calls `visit` with each field of the type and of those within, by the way from the type to it.
using Way = std::vector<const FieldDescriptor*>;
void ForEachField(const Descriptor& type, const Way& way,
                  const std::function<void(const Way&)>& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    Way longer = way;
    longer.push_back(type.field(i));
    visit(longer);
    if (type.field(i)->message_type() != nullptr) {
      ForEachField(*type.field(i)->message_type(), longer, visit);
    }
  }
}

// Calls `visit` with each field of each message that a caller sends to a service of ours.
void ForEachRequestField(const std::function<void(const Descriptor&, const Way&)>& visit) {
  std::set<const Descriptor*> requests;
  for (const auto* file :
       {v1::EmbedRequest::descriptor()->file(), ModelInferRequest::descriptor()->file(),
        tei::v1::EmbedRequest::descriptor()->file(),
        grpc::reflection::v1alpha::ExtensionRequest::descriptor()->file()}) {
    for (int service = 0; service < file->service_count(); ++service) {
      for (int i = 0; i < file->service(service)->method_count(); ++i) {
        requests.insert(file->service(service)->method(i)->input_type());
      }
    }
  }
  for (const Descriptor* request : requests) {
    ForEachField(*request, {}, [&](const Way& way) { visit(*request, way); });
  }
}

std::string Header(int number, size_t length) {
  std::string header;
  for (auto value : {static_cast<size_t>(number) << 3 | 2, length}) {
    for (; value >= 128; value >>= 7) header += static_cast<char>(value | 128);
    header += static_cast<char>(value);
  }
  return header;
}

// Returns a message in which the field at the end of the way has these contents so many times.
std::string Wire(const Way& way, const std::string& contents, int64_t times) {
  const bool has_length = way.back()->message_type() != nullptr ||
                          way.back()->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  std::string wire;
  for (int64_t i = 0; i < times; ++i) {
    // A number by itself is a list of one.
    const std::string one = has_length ? contents : std::string(1, '\1');
    wire += Header(way.back()->number(), one.size()) + one;
  }
  for (size_t i = way.size() - 1; i > 0; --i) {
    wire = Header(way[i - 1]->number(), wire.size()) + wire;
  }
  return wire;
}

// These may be as many, or as long, as their message has bytes, which are counted.
const std::set<std::string>& Unbounded() {
  static const std::set<std::string> names = {"linserve.v1.Sequence.token_ids",
                                              "linserve.v1.GenerateRequest.token_ids",
                                              "inference.InferTensorContents.bool_contents",
                                              "inference.InferTensorContents.int_contents",
                                              "inference.InferTensorContents.int64_contents",
                                              "inference.InferTensorContents.uint_contents",
                                              "inference.InferTensorContents.uint64_contents",
                                              "inference.InferTensorContents.fp32_contents",
                                              "inference.InferTensorContents.fp64_contents",
                                              "linserve.v1.Sequence.text",
                                              "linserve.v1.GenerateRequest.text",
                                              "tei.v1.EmbedRequest.inputs",
                                              "tei.v1.EmbedAllRequest.inputs",
                                              "tei.v1.EmbedSparseRequest.inputs",
                                              "tei.v1.PredictRequest.inputs",
                                              "tei.v1.PredictPairRequest.inputs",
                                              "tei.v1.RerankRequest.query",
                                              "tei.v1.RerankRequest.texts",
                                              "tei.v1.EncodeRequest.inputs",
                                              "tei.v1.DecodeRequest.ids",
                                              "inference.InferParameter.string_param",
                                              "inference.ModelRepositoryParameter.string_param"};
  return names;
}

int64_t MostOf(const std::string& list) {
  if (list == "linserve.v1.GenerateOptions.stop_tokens") return 1024;
  const bool sequences = list == "linserve.v1.EmbedRequest.sequences" ||
                         list == "inference.InferTensorContents.bytes_contents";
  return sequences ? kSequences : 64;
}

absl::Status StatusOf(const Descriptor& request, const std::string& wire) {
  return DecodedBytes(BytesOf(wire), MessagePlan::Of(request), {.sequences = kSequences}).status();
}

TEST(Bounds, HoldForEveryListOfEveryRequest) {
  int lists = 0;
  ForEachRequestField([&](const Descriptor& request, const Way& way) {
    const FieldDescriptor& field = *way.back();
    if (!field.is_repeated() || Unbounded().contains(field.full_name())) return;
    const int64_t most = MostOf(field.full_name());
    const absl::Status at = StatusOf(request, Wire(way, "", most));
    EXPECT_TRUE(at.ok()) << at;
    EXPECT_THAT(StatusOf(request, Wire(way, "", most + 1)),
                IsInvalid("." + field.name() + " holds more than " + std::to_string(most)));
    EXPECT_THAT(StatusOf(request, Wire(way, "", 1000 * most)), IsInvalid("holds more than"));
    ++lists;
  });
  EXPECT_GE(lists, 15);
}

TEST(Bounds, HoldForEveryTextOfEveryRequest) {
  int texts = 0;
  ForEachRequestField([&](const Descriptor& request, const Way& way) {
    const FieldDescriptor& field = *way.back();
    const bool text = field.type() == FieldDescriptor::TYPE_STRING;
    if (!text || Unbounded().contains(field.full_name())) return;
    const absl::Status at = StatusOf(request, Wire(way, std::string(128, 'a'), 1));
    EXPECT_TRUE(at.ok()) << at;
    for (const size_t length : {size_t{129}, size_t{128000}}) {
      EXPECT_THAT(StatusOf(request, Wire(way, std::string(length, 'a'), 1)),
                  IsInvalid("." + field.name() + ": it has " + std::to_string(length) +
                            " bytes, expected at most 128"));
    }
    ++texts;
  });
  EXPECT_GE(texts, 25);
}

// Their lists would be joined, past what each may hold.
TEST(Bounds, HoldForMessagesThatAreGivenTwice) {
  v1::EmbedRequest request;
  request.mutable_options()->add_outputs("y");
  const std::string wire = request.SerializeAsString();
  EXPECT_TRUE(Counted<v1::EmbedRequest>(wire).ok());
  EXPECT_THAT(Counted<v1::EmbedRequest>(wire + wire),
              IsInvalid("field EmbedRequest.options is given more than once"));
}

TEST(Bounds, HoldForNumbersInEitherForm) {
  v1::EmbedRequest request;
  v1::Tensor& x = *request.add_sequences()->mutable_x();
  for (int i = 0; i < 65; ++i) x.add_shape(1);
  EXPECT_THAT(Counted<v1::EmbedRequest>(request.SerializeAsString()), IsInvalid("Tensor.shape"));
  std::string alone;
  for (int i = 0; i < 65; ++i) alone += "\x10\x01";  // field 2, a varint
  const std::string in_x = Header(15, alone.size()) + alone;
  EXPECT_THAT(Counted<v1::EmbedRequest>(Header(15, in_x.size()) + in_x), IsInvalid("Tensor.shape"));
}

TEST(Bounds, RefuseGroups) {
  EXPECT_THAT(Counted<v1::EmbedRequest>("\xa3\x06\xa4\x06"), IsInvalid("is a group"));
}

TEST(Bounds, CountFieldsThatNobodyKnows) {
  std::string unknown;
  for (int i = 0; i < 1000; ++i) unknown += "\xa0\x06\x01";  // field 100, a varint
  EXPECT_GE(*Counted<v1::EmbedRequest>(unknown), *DecodedBytes<v1::EmbedRequest>(BytesOf(unknown)));
}

TEST(Bounds, EndTheCountOfWhatIsTooMuchAnyway) {
  const std::string wire = Wire({v1::EmbedRequest::descriptor()->FindFieldByName("sequences"),
                                 v1::Sequence::descriptor()->FindFieldByName("token_ids")},
                                "", 100000);
  const auto counted =
      DecodedBytes(BytesOf(wire), MessagePlan::Of<v1::EmbedRequest>(), {.bytes = 10000});
  EXPECT_GT(*counted, 10000);
  EXPECT_LT(*counted, 20000);
}

}  // namespace
}  // namespace linserve
