#pragma once

#include <grpcpp/support/byte_buffer.h>

namespace linserve {

// Makes what is sent for one request or sequence, message by message, so that only the one being
// written is ever serialised.
class Answer {
 public:
  virtual ~Answer() = default;

  // Makes the next message, and returns true if it is the last one. REQUIRES: the last one was not
  // made yet.
  virtual bool Next(grpc::ByteBuffer& message) = 0;
};

}  // namespace linserve
