#pragma once

#include "absl/status/status.h"
#include "rpc/messages/wire.h"

namespace linserve {

// Makes what is sent for one request or sequence, message by message, so that only the one being
// written is ever serialised.
class Answer {
 public:
  virtual ~Answer() = default;

  // Adds the next message's fields to an empty one, and returns true if it is the last one.
  // REQUIRES: the last one was not made yet.
  virtual bool Next(WireMessage& message) = 0;

  // Called if a message could not be made, with which the call ends.
  virtual void Failed(const absl::Status& /*fault*/) {}

  // Returns the field in which its messages take those of answers with the same number; 0: none.
  virtual int field_of_others() const { return 0; }
};

}  // namespace linserve
