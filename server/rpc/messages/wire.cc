#include "rpc/messages/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <utility>

namespace linserve {
namespace {

// Copying fewer bytes than this costs less than a gRPC slice for them.
constexpr size_t kCopied = 4096;

void AppendVarint(uint32_t value, std::string& bytes) {
  uint8_t encoded[5];
  const uint8_t* end =
      google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(value, encoded);
  bytes.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(end - encoded));
}

grpc::Slice SliceOf(const Tensor& tensor) {
  // gRPC's slices are mutable by their type alone.
  return {const_cast<std::byte*>(tensor.bytes()), tensor.byte_size(),
          [](void* owner) { delete static_cast<Tensor*>(owner); }, new Tensor(tensor)};
}

}  // namespace

void WireMessage::Add(const google::protobuf::MessageLite& fields) {
  const size_t before = tail_.size();
  fields.AppendToString(&tail_);
  size_ += tail_.size() - before;
}

void WireMessage::AddBytes(int number, const Tensor& tensor) {
  AddHeader(number, tensor.byte_size());
  if (tensor.byte_size() >= kCopied) return Append(SliceOf(tensor));
  tail_.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  size_ += tensor.byte_size();
}

void WireMessage::AddMessage(int number, WireMessage message) {
  AddHeader(number, message.size_);
  for (grpc::Slice& slice : message.slices_) Append(std::move(slice));
  tail_ += message.tail_;
  size_ += message.tail_.size();
}

void WireMessage::AddHeader(int number, size_t length) {
  using google::protobuf::internal::WireFormatLite;
  const size_t before = tail_.size();
  AppendVarint(WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), tail_);
  AppendVarint(static_cast<uint32_t>(length), tail_);  // no message has 2 GiB
  size_ += tail_.size() - before;
}

void WireMessage::Append(grpc::Slice slice) {
  Flush();
  size_ += slice.size();
  slices_.push_back(std::move(slice));
}

void WireMessage::Flush() {
  if (tail_.empty()) return;
  slices_.emplace_back(std::exchange(tail_, {}));
}

grpc::ByteBuffer WireMessage::Take() && {
  Flush();
  return {slices_.data(), slices_.size()};
}

}  // namespace linserve
