#include "rpc/messages/peek.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>

#include "core/strings/utf8.h"
#include "serving/request_context.h"

namespace linserve {

using google::protobuf::internal::WireFormatLite;

void Peek(CodedInputStream& input, const std::function<bool(uint32_t tag)>& take) {
  while (const uint32_t tag = input.ReadTag()) {
    if (!take(tag) && !WireFormatLite::SkipField(&input, tag)) return;
  }
}

void Peek(const grpc::ByteBuffer& bytes,
          const std::function<bool(CodedInputStream& input, uint32_t tag)>& take) {
  grpc::ByteBuffer shared = bytes;  // a reader takes no const buffer
  grpc::ProtoBufferReader reader(&shared);
  if (!reader.status().ok()) return;
  CodedInputStream input(&reader);
  Peek(input, [&](uint32_t tag) { return take(input, tag); });
}

PeekedId PeekId(CodedInputStream& input) {
  uint32_t size = 0;
  if (!input.ReadVarint32(&size)) return {};
  // One byte more is read, which says whether the cut goes through a character.
  const auto read = static_cast<int>(std::min<size_t>(size, kMaxIdBytes + 1));
  std::string id;
  if (!input.ReadString(&id, read) || !input.Skip(static_cast<int>(size) - read)) return {};
  id = CutAtCharacter(id, kMaxIdBytes);
  return {.text = IsUtf8(id) ? id : "", .cut = size > kMaxIdBytes};
}

PeekedId PeekId(const grpc::ByteBuffer& bytes, int field) {
  PeekedId id;
  Peek(bytes, [&](CodedInputStream& input, uint32_t tag) {
    if (tag != LengthTag(field)) return false;
    id = PeekId(input);
    return true;
  });
  return id;
}

}  // namespace linserve
