#pragma once

#include <cstdlib>

#include "rpc/counted.h"

namespace linserve {

// Returns whether the message is within its bounds. What is counted for it before it is decoded
// must be no less than it takes then, whatever the bytes are.
template <typename Message>
bool FuzzBounds(const grpc::ByteBuffer& bytes) {
  const auto counted = CountedBytes<Message>(bytes);
  if (!counted.ok()) return false;
  const auto decoded = DecodedBytes<Message>(bytes);
  if (decoded && *decoded > *counted) std::abort();
  return true;
}

}  // namespace linserve
