#include "rpc/received.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/test_files.h"

namespace linserve {
namespace {

using google::protobuf::util::MessageDifferencer;

std::string RandomBytes(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// As gRPC might have received it: cut at random places.
grpc::ByteBuffer Buffer(const std::string& bytes, size_t longest, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min(bytes.size() - at, longest / 2 + 1 + random() % longest);
    slices.emplace_back(bytes.data() + at, size);
    at += size;
  }
  return {slices.data(), slices.size()};
}

std::string Text(const Tensor& bytes) {
  return {reinterpret_cast<const char*>(bytes.bytes()), bytes.byte_size()};
}

void PutBack(Received<v1::EmbedRequest>& request) {
  for (const auto& [place, bytes] : request.large) {
    EXPECT_EQ(request.message.sequences(place).x().data(), "");
    request.message.mutable_sequences(place)->mutable_x()->set_data(Text(bytes));
  }
}

void PutBack(Received<inference::ModelInferRequest>& request) {
  for (const auto& [place, bytes] : request.large) {
    EXPECT_EQ(request.message.raw_input_contents(place), "");
    request.message.set_raw_input_contents(place, Text(bytes));
  }
}

v1::EmbedRequest FloatRequest(const std::vector<size_t>& sizes, size_t mask = 100) {
  v1::EmbedRequest request;
  request.set_request_id("r");
  request.mutable_options()->set_normalize(true);
  for (const size_t size : sizes) {
    v1::Sequence& sequence = *request.add_sequences();
    sequence.set_id(std::to_string(size));
    if (size == 0) continue;
    sequence.mutable_x()->set_dtype(v1::DATA_TYPE_U8);
    sequence.mutable_x()->add_shape(static_cast<int64_t>(size));
    sequence.mutable_x()->set_data(RandomBytes(size, 1));
    (*sequence.mutable_inputs())["mask"].set_data(RandomBytes(mask, 2));
  }
  return request;
}

inference::ModelInferRequest RawRequest(const std::vector<size_t>& sizes) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  for (const size_t size : sizes) {
    request.add_inputs()->set_name(std::to_string(size));
    request.add_raw_input_contents(RandomBytes(size, 3));
  }
  return request;
}

// With as many large fields, and nothing lost.
template <typename Message>
void ExpectReceived(const Message& message, size_t large, size_t slice = 10000) {
  const std::string bytes = message.SerializeAsString();
  for (unsigned seed = 0; seed < 5; ++seed) {
    grpc::ByteBuffer buffer = Buffer(bytes, slice, seed);
    Received<Message> request;
    ASSERT_TRUE(Parse(buffer, request, kLargeField).ok());
    EXPECT_EQ(request.bytes, std::ssize(bytes));
    EXPECT_EQ(buffer.Length(), 0u);
    EXPECT_EQ(request.large.size(), large);
    PutBack(request);
    EXPECT_TRUE(MessageDifferencer::Equals(request.message, message));
  }
}

TEST(ReceivedRequests, LeaveLargeFieldsWhereTheyAre) {
  ExpectReceived(FloatRequest({100000}), 1);
  ExpectReceived(FloatRequest({10, 100000, 4095, 0, 4096, 300000, 0}), 3);
  ExpectReceived(RawRequest({100000}), 1);
  ExpectReceived(RawRequest({0, 100000, 7, 5000, 4096, 4095}), 3);
}

TEST(ReceivedRequests, CopyWhatIsSmallOrLiesInManySmallSlices) {
  ExpectReceived(FloatRequest({5000, 5000}), 0);
  ExpectReceived(FloatRequest({5000, 5000}, /*mask=*/4000000), 0);
  ExpectReceived(FloatRequest(std::vector<size_t>(100, 4000)), 0);
  ExpectReceived(FloatRequest({100000}), 0, /*slice=*/500);
  ExpectReceived(RawRequest({100000}), 0, /*slice=*/500);
}

TEST(ReceivedRequests, CopyNothingOfALargeField) {
  const std::string bytes = RawRequest({200000}).SerializeAsString();
  const grpc::Slice slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
  grpc::ByteBuffer buffer(&slice, 1);
  Received<inference::ModelInferRequest> request;
  ASSERT_TRUE(Parse(buffer, request, kLargeField).ok());
  const auto* field = reinterpret_cast<const char*>(request.large.at(0).bytes());
  EXPECT_GE(field, bytes.data());
  EXPECT_LT(field, bytes.data() + bytes.size());
}

// Protobuf merges messages of which one is written behind the other.
TEST(ReceivedRequests, AreWhatProtobufMakesOfFieldsThatComeTwice) {
  const v1::Sequence sequence = FloatRequest({100000}).sequences(0);
  for (const size_t second : {size_t{0}, size_t{10}, size_t{90000}}) {
    v1::Sequence more;
    more.mutable_x()->set_data(RandomBytes(second, 5));
    more.mutable_x()->add_shape(1);
    const std::string whole = sequence.SerializeAsString() + more.SerializeAsString();
    std::string bytes = "\x7a";  // field 15, of a length
    for (size_t size = whole.size(); size > 0; size >>= 7) {
      bytes += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
    }
    bytes += whole;
    v1::EmbedRequest expected;
    ASSERT_TRUE(expected.ParseFromString(bytes));
    grpc::ByteBuffer buffer = Buffer(bytes, 10000);
    Received<v1::EmbedRequest> received;
    ASSERT_TRUE(Parse(buffer, received, kLargeField).ok());
    const Tensor data = BytesOf(received.message.sequences(0).x().data(), received.large, 0, {});
    EXPECT_EQ(Text(data), expected.sequences(0).x().data());
  }
}

TEST(ReceivedRequests, ThatAreNoneAreRefusedInTheSameWords) {
  const std::string good = FloatRequest({100000, 5000}).SerializeAsString();
  for (const size_t size : {good.size() - 1, size_t{99000}, size_t{70000}}) {
    grpc::ByteBuffer cut = Buffer(good.substr(0, size), 10000);
    Received<v1::EmbedRequest> request;
    EXPECT_THAT(Parse(cut, request, kLargeField),
                IsInvalid("cannot be read as linserve.v1.EmbedRequest"));
    EXPECT_TRUE(request.large.empty());
  }
}

// Any bytes: whatever protobuf makes of them, and nothing where it makes nothing of them.
template <typename Message>
void ExpectWhatProtobufMakes(const std::string& bytes, size_t least, unsigned seed) {
  Message expected;
  const bool good = expected.ParseFromString(bytes);
  grpc::ByteBuffer buffer = Buffer(bytes, 20, seed);
  Received<Message> request;
  ASSERT_EQ(Parse(buffer, request, least).ok(), good);
  if (!good) return;
  PutBack(request);
  ASSERT_EQ(request.message.SerializeAsString(), expected.SerializeAsString());
}

template <typename Message>
void ExpectWhatProtobufMakesOfAllThatIsLike(const Message& good) {
  const std::string bytes = good.SerializeAsString();
  grpc::ByteBuffer buffer = Buffer(bytes, 20);
  Received<Message> request;
  ASSERT_TRUE(Parse(buffer, request, 2).ok());
  ASSERT_FALSE(request.large.empty());
  for (size_t size = 0; size <= bytes.size(); ++size) {
    ExpectWhatProtobufMakes<Message>(bytes.substr(0, size), 2, 7);
  }
  std::mt19937 random(4);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = bytes;
    for (unsigned flips = random() % 3 + 1; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    ExpectWhatProtobufMakes<Message>(damaged, 2, random());
  }
}

TEST(ReceivedRequests, AreWhatProtobufMakesOfDamagedBytes) {
  ExpectWhatProtobufMakesOfAllThatIsLike(FloatRequest({90, 3, 70, 0, 80}, /*mask=*/1));
  ExpectWhatProtobufMakesOfAllThatIsLike(RawRequest({40, 3, 70}));
}

// Each length says more than there is, or is written in more bytes than it needs.
TEST(ReceivedRequests, AreWhatProtobufMakesOfWrongLengths) {
  const std::string data(60, 'd');
  const std::string inner = "\x7a" + std::string(1, '\x3c') + data;    // Tensor.data
  const std::string middle = "\x7a" + std::string(1, '\x3e') + inner;  // Sequence.x
  const std::string whole = "\x7a" + std::string(1, '\x40') + middle;  // EmbedRequest.sequences
  ASSERT_TRUE(v1::EmbedRequest().ParseFromString(whole));
  for (const size_t place : {1, 3, 5}) {
    for (const int change : {-2, -1, 0, 1, 2, 20}) {
      std::string wrong = whole;
      wrong[place] = static_cast<char>(wrong[place] + change);
      ExpectWhatProtobufMakes<v1::EmbedRequest>(wrong, 2, 3);
      ExpectWhatProtobufMakes<v1::EmbedRequest>(wrong + whole, 2, 3);
      std::string longer = wrong;
      longer[place] = static_cast<char>(longer[place] | 0x80);
      for (int more = 1; more < 10; ++more) {
        std::string header = longer;
        header.insert(place + 1, std::string(static_cast<size_t>(more - 1), '\x80') + '\0');
        ExpectWhatProtobufMakes<v1::EmbedRequest>(header, 2, 3);
      }
    }
  }
}

}  // namespace
}  // namespace linserve
