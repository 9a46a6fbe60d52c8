#include "rpc/messages/decoded_size.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <array>
#include <string>

namespace linserve {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using FieldForm = FieldPlan::Form;

constexpr int64_t kList = 96;           // one that has entries, besides them
constexpr int64_t kUnknownField = 128;  // one that is kept though nobody knows it

// Reads through a message. Its functions return false where reading ends before the message does:
// past the bounds, or where the bytes are no message.
class Walk {
 public:
  Walk(CodedInputStream& input, const DecodedBounds& bounds, int64_t bytes)
      : input_(input), bounds_(bounds), bytes_(bytes) {}

  bool Message(const MessagePlan& plan);

  int64_t bytes() const { return bytes_; }
  const absl::Status& fault() const { return fault_; }

 private:
  bool Known(const FieldPlan& field, uint32_t type, int64_t& count);
  bool Unknown(uint32_t type);
  bool Contents(const FieldPlan& field, int64_t& count);
  bool Numbers(const FieldPlan& field, int length, int64_t& count);
  bool Varints(int length, int64_t& count);
  bool Count(const FieldPlan& field, int64_t more, int64_t& count);
  // Takes room for bytes that become so many copies, once it is seen that they are there.
  bool Passes(int length, int64_t copies) { return input_.Skip(length) && Take(length * copies); }
  bool Take(int64_t bytes) { return (bytes_ += bytes) <= bounds_.bytes; }
  bool Refuse(const std::string& what) {
    fault_ = absl::InvalidArgumentError(what);
    return false;
  }

  CodedInputStream& input_;
  const DecodedBounds& bounds_;
  int64_t bytes_;
  absl::Status fault_;
};

bool Walk::Message(const MessagePlan& plan) {
  std::array<int64_t, MessagePlan::kFields> counts{};
  while (const uint32_t tag = input_.ReadTag()) {
    const auto number = static_cast<size_t>(WireFormatLite::GetTagFieldNumber(tag));
    const auto type = static_cast<uint32_t>(WireFormatLite::GetTagWireType(tag));
    const FieldPlan* field = plan.Find(number);
    if (field == nullptr ? !Unknown(type) : !Known(*field, type, counts[number])) return false;
  }
  return true;
}

// Reads a field of the message. Where its bytes are not of the form that it has, nobody knows it.
bool Walk::Known(const FieldPlan& field, uint32_t type, int64_t& count) {
  uint64_t varint = 0;
  switch (type) {
    case WireFormatLite::WIRETYPE_VARINT:
      if (field.form != FieldForm::kVarint) return Unknown(type);
      return Count(field, 1, count) && input_.ReadVarint64(&varint);
    case WireFormatLite::WIRETYPE_FIXED32:
      if (field.form != FieldForm::kFixed32) return Unknown(type);
      return Count(field, 1, count) && input_.Skip(4);
    case WireFormatLite::WIRETYPE_FIXED64:
      if (field.form != FieldForm::kFixed64) return Unknown(type);
      return Count(field, 1, count) && input_.Skip(8);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return Contents(field, count);
    default:
      return Unknown(type);
  }
}

bool Walk::Unknown(uint32_t type) {
  uint64_t varint = 0;
  uint32_t length = 0;
  if (!Take(kUnknownField)) return false;
  switch (type) {
    case WireFormatLite::WIRETYPE_VARINT:
      return input_.ReadVarint64(&varint);
    case WireFormatLite::WIRETYPE_FIXED32:
      return input_.Skip(4);
    case WireFormatLite::WIRETYPE_FIXED64:
      return input_.Skip(8);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return input_.ReadVarint32(&length) && Passes(static_cast<int>(length), 1);
    case WireFormatLite::WIRETYPE_START_GROUP:
      return Refuse("a field of the message is a group, which this protocol does not have");
    default:
      return false;
  }
}

// Reads a field whose length stands before it.
bool Walk::Contents(const FieldPlan& field, int64_t& count) {
  if (field.form == FieldForm::kMessage) {
    if (!Count(field, 1, count)) return false;
    const CodedInputStream::Limit limit = input_.ReadLengthAndPushLimit();
    const bool read = Message(*field.message) && input_.BytesUntilLimit() == 0;
    input_.PopLimit(limit);
    return read;
  }
  uint32_t bytes = 0;
  if (!input_.ReadVarint32(&bytes)) return false;
  const auto length = static_cast<int>(bytes);
  if (length < 0) return false;
  if (field.form != FieldForm::kBytes) return Numbers(field, length, count);
  if (length > field.most_bytes) {
    return Refuse("field " + field.name + ": it has " + std::to_string(length) +
                  " bytes, expected at most " + std::to_string(field.most_bytes));
  }
  return Count(field, 1, count) && Passes(length, field.copies);
}

// Reads numbers that stand one after the other.
bool Walk::Numbers(const FieldPlan& field, int length, int64_t& count) {
  if (!field.repeated) {
    return Take(kUnknownField) && Passes(length, 1);
  }
  int64_t numbers = length / (field.form == FieldForm::kFixed64 ? 8 : 4);
  const bool read =
      field.form == FieldForm::kVarint ? Varints(length, numbers) : input_.Skip(length);
  return Count(field, numbers, count) && read;
}

// Counts the varints in so many bytes: each ends with a byte below 128.
bool Walk::Varints(int length, int64_t& count) {
  count = 0;
  const void* data = nullptr;
  int size = 0;
  while (length > 0 && input_.GetDirectBufferPointer(&data, &size)) {
    size = std::min(size, length);
    const auto* bytes = static_cast<const int8_t*>(data);
    count += std::count_if(bytes, bytes + size, [](int8_t byte) { return byte >= 0; });
    length -= size;
    if (!input_.Skip(size)) return false;
  }
  return length == 0;
}

// Counts more of a field.
bool Walk::Count(const FieldPlan& field, int64_t more, int64_t& count) {
  count += more;
  if (!field.repeated) {
    // Where a message is given twice, its lists would be joined, past what each may hold.
    const bool twice = field.form == FieldForm::kMessage && count > 1;
    return twice ? Refuse("field " + field.name + " is given more than once") : Take(field.bytes);
  }
  const bool sequences = field.most == FieldPlan::kSequences;
  const int64_t most = sequences ? bounds_.sequences : field.most;
  if (count <= most) return Take(more * field.bytes + (count == more ? kList : 0));
  return Refuse("field " + field.name + " holds more than " + std::to_string(most) + " entries" +
                (sequences ? " (max_sequences_per_request); send them in several requests" : ""));
}

}  // namespace

absl::StatusOr<int64_t> DecodedBytes(const grpc::ByteBuffer& bytes, const MessagePlan& plan,
                                     const DecodedBounds& bounds) {
  grpc::ByteBuffer shared = bytes;  // a reader takes no const buffer
  grpc::ProtoBufferReader reader(&shared);
  if (!reader.status().ok()) return plan.bytes();
  CodedInputStream input(&reader);
  Walk walk(input, bounds, plan.bytes());
  if (!walk.Message(plan) && !walk.fault().ok()) return walk.fault();
  return walk.bytes();
}

}  // namespace linserve
