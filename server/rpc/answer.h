#pragma once

namespace linserve {

// What is sent for one request or sequence, message by message, so that only the one being written
// is ever serialised.
template <typename Message>
class Answer {
 public:
  virtual ~Answer() = default;

  // Makes the next message; true if it is the last one. REQUIRES: that was not made yet.
  virtual bool Next(Message& message) = 0;
};

}  // namespace linserve
