#pragma once

#include <grpcpp/support/byte_buffer.h>

namespace linserve {

// What is sent for one request or sequence, message by message, so that only the one being written
// is ever serialised.
class Answer {
 public:
  virtual ~Answer() = default;

  // Makes the next message; true if it is the last one. REQUIRES: that was not made yet.
  virtual bool Next(grpc::ByteBuffer& message) = 0;
};

}  // namespace linserve
