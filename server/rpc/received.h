#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "inference/grpc_service.pb.h"
#include "linserve/v1/embedding.pb.h"

namespace linserve {

// Replaces `message` by what `bytes` held, and gives them up: both together are twice the memory.
// INVALID_ARGUMENT if that was no such message.
absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message);

// Fields of bytes, too large to be copied out of what gRPC received: the message has them empty. By
// the place of the sequence, or of the raw contents, that each is of; U8.
using LargeFields = std::map<int, Tensor>;

// What a field holds, U8: in the message, which `owner` keeps alive, or left out of it as `place`.
Tensor BytesOf(const std::string& field, const LargeFields& large, int place,
               const std::shared_ptr<const void>& owner);

// A request, and the size that it had on the wire.
template <typename Message>
struct Received {
  Message message{};
  LargeFields large{};
  int64_t bytes = 0;
};

// From so many bytes on, a copy costs more than to keep account of where they lie.
constexpr size_t kLargeField = 4096;
constexpr size_t kNoField = SIZE_MAX;

// Parse(), but that fields of `least` bytes or more, `x` of sequences and raw contents, stay where
// gRPC received them, if they are most of a message.
absl::Status Parse(grpc::ByteBuffer& bytes, Received<v1::EmbedRequest>& request, size_t least);
absl::Status Parse(grpc::ByteBuffer& bytes, Received<inference::ModelInferRequest>& request,
                   size_t least);

}  // namespace linserve
