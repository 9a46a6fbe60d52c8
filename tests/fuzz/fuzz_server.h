#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "serving/service_context.h"

namespace linserve {

// Returns engines over the test models "tokens", "floats" and "sessions", which is "tokens" with
// sessions, as a request meets them behind the wire. They are made at the first call, and never
// destroyed.
ServiceContext& FuzzServer();

// Returns a caller who may do everything.
std::shared_ptr<const Caller> FuzzCaller();

// Returns the bytes as gRPC might have received them: in two slices.
inline grpc::ByteBuffer InSlices(const uint8_t* data, size_t size) {
  const grpc::Slice slices[] = {grpc::Slice(data, size / 3),
                                grpc::Slice(data + size / 3, size - size / 3)};
  return {slices, 2};
}

}  // namespace linserve
