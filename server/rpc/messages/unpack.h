#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "access/caller.h"
#include "serving/inflight.h"
#include "serving/service_context.h"

namespace linserve {

// These unpack a message that its caller has packed by gzip, and leave others as they are.
// gRPC 1.51 would unpack a few megabytes to gigabytes before it looks at their size, and so is not
// let do it.

// Room for each piece is taken by `grow` before the piece is kept. INVALID_ARGUMENT if the message
// is malformed, RESOURCE_EXHAUSTED if it has more than `most` bytes.
absl::Status Unpack(grpc::ByteBuffer& bytes, int64_t most,
                    absl::FunctionRef<absl::Status(int64_t bytes)> grow);

// `held` gets the room for a request that was unpacked, which is to be held until it is decoded.
// What was unpacked in vain is paid for.
absl::Status UnpackRequest(const ServiceContext& service, const Caller& caller,
                           grpc::ByteBuffer& bytes, Inflight::Reservation& held);

}  // namespace linserve
