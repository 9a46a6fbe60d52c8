#pragma once

#include <optional>

#include "rpc/calls/received.h"
#include "rpc/messages/decoded_size.h"
#include "serving/rpc_limits.h"

namespace linserve {

// Returns what DecodedBytes() counts for a message of up to the usual number of sequences.
template <typename Message>
absl::StatusOr<int64_t> CountedBytes(const grpc::ByteBuffer& bytes) {
  return DecodedBytes(bytes, MessagePlan::Of<Message>(),
                      {.sequences = RpcLimits{}.max_sequences_per_request});
}

// Returns the bytes that protobuf has allocated once the message is decoded; nullopt if the bytes
// are no such message.
template <typename Message>
std::optional<int64_t> DecodedBytes(grpc::ByteBuffer bytes) {
  Message message;
  if (!Parse(bytes, message).ok()) return std::nullopt;
  return static_cast<int64_t>(message.SpaceUsedLong());
}

}  // namespace linserve
