#pragma once

#include <memory>
#include <utility>

#include "rpc/calls/answer.h"
#include "rpc/messages/wire.h"

namespace linserve {

// Sends one small message as an answer. Keeps `keep_alive` until it is destroyed.
class MessageAnswer : public Answer {
 public:
  MessageAnswer(const google::protobuf::MessageLite& message, std::shared_ptr<void> keep_alive)
      : keep_alive_(std::move(keep_alive)) {
    wire_.Add(message);
  }

  bool Next(WireMessage& message) override {
    message = std::move(wire_);
    return true;
  }

 private:
  WireMessage wire_;
  const std::shared_ptr<void> keep_alive_;
};

}  // namespace linserve
