#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <string>

namespace linserve {

using google::protobuf::io::CodedInputStream;

// These functions read what has to be known of a message before it is decoded: its caller may not
// be admitted. Bytes that are not a message are read as far as possible: whoever decodes them
// reports the fault.

// Hands the tag of each field to `take`, which reads the field's value and returns true, or returns
// false for the field to be skipped.
void Peek(CodedInputStream& input, const std::function<bool(uint32_t tag)>& take);
void Peek(const grpc::ByteBuffer& bytes,
          const std::function<bool(CodedInputStream& input, uint32_t tag)>& take);

// Holds an id of UTF-8, or "" where the field is not UTF-8.
struct PeekedId {
  std::string text;
  bool cut = false;  // it is longer than kMaxIdBytes, and only so much of it was read
};

// Reads the id of a request.
PeekedId PeekId(CodedInputStream& input);
// Reads the id of a message whose other fields are not asked for.
PeekedId PeekId(const grpc::ByteBuffer& bytes, int field);

constexpr uint32_t LengthTag(int field) {
  return google::protobuf::internal::WireFormatLite::MakeTag(
      field, google::protobuf::internal::WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}
constexpr uint32_t VarintTag(int field) {
  return google::protobuf::internal::WireFormatLite::MakeTag(
      field, google::protobuf::internal::WireFormatLite::WIRETYPE_VARINT);
}

}  // namespace linserve
