#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace linserve {

class MessagePlan;

// Says how a field of a message lies on the wire, what it takes in memory, and how much of it there
// may be in one message.
struct FieldPlan {
  enum class Form : uint8_t { kNone, kVarint, kFixed32, kFixed64, kBytes, kMessage };

  Form form = Form::kNone;  // kNone: the message has no such field
  bool repeated = false;
  int64_t bytes = 0;       // what one takes, without its contents
  int64_t copies = 1;      // how often its contents are held at a time
  int64_t most = 0;        // kAny, kSequences or how many there may be, if it is repeated
  int64_t most_bytes = 0;  // kAny or how long one may be, if it is a text
  const MessagePlan* message = nullptr;  // the plan of its contents, if it is a message
  std::string name{};                    // with that of its message

  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kSequences = -1;  // RpcLimits::max_sequences_per_request
};

// Knows the fields of a type of message. Whatever is repeated or a text has a bound: what a small
// message names, such as inputs, outputs, axes and parameters, is 64 at most, and an id or a name
// is of kMaxIdBytes. The few fields that are larger stand in a table.
class MessagePlan {
 public:
  // Returns the plan of a type, whose messages hold none of the same type. It lives for ever.
  static const MessagePlan& Of(const google::protobuf::Descriptor& type);
  template <typename Message>
  static const MessagePlan& Of() {
    static const MessagePlan& plan = Of(*Message::descriptor());
    return plan;
  }

  static constexpr size_t kFields = 32;  // numbers of fields are below

  int64_t bytes() const { return bytes_; }  // what an empty message takes

  // Returns the field of this number; null if there is none.
  const FieldPlan* Find(size_t number) const {
    const bool known = number < fields_.size() && fields_[number].form != FieldPlan::Form::kNone;
    return known ? &fields_[number] : nullptr;
  }

 private:
  explicit MessagePlan(const google::protobuf::Descriptor& type);

  int64_t bytes_;
  std::vector<FieldPlan> fields_;  // by number
};

}  // namespace linserve
