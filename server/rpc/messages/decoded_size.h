#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "rpc/messages/message_plan.h"

namespace linserve {

struct DecodedBounds {
  int64_t sequences = FieldPlan::kAny;  // how many a request may hold
  int64_t bytes = FieldPlan::kAny;      // past so many, nothing more is counted
};

// Returns the bytes that a message takes once it is decoded, and what is made of its lists: no
// fewer, and found without decoding it, in time that grows with its size alone. INVALID_ARGUMENT
// names what it holds too much of. Bytes that are no message are counted as far as they go: whoever
// decodes them comes no further.
absl::StatusOr<int64_t> DecodedBytes(const grpc::ByteBuffer& bytes, const MessagePlan& plan,
                                     const DecodedBounds& bounds);

}  // namespace linserve
