#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace linserve {

// Builds a protobuf message as it goes over the wire, without copying the bytes of tensors (but of
// small ones). They are gRPC slices that keep their tensor until the buffer and gRPC have let go of
// it.
class WireMessage {
 public:
  // Appends fields. Fields that are added later must be other ones.
  void Add(const google::protobuf::MessageLite& fields);

  // Appends field `number` of type bytes.
  void AddBytes(int number, const Tensor& tensor);

  // Appends field `number` of a message type.
  void AddMessage(int number, WireMessage message);

  size_t size() const { return size_; }

  grpc::ByteBuffer Take() &&;

 private:
  void AddHeader(int number, size_t length);
  void Append(grpc::Slice slice);
  void Flush();

  std::vector<grpc::Slice> slices_;
  std::string tail_;  // bytes that follow the slices
  size_t size_ = 0;
};

}  // namespace linserve
