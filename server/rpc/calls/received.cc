#include "rpc/calls/received.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <string>

#include "core/threads/guarded.h"
#include "rpc/messages/decoded_size.h"
#include "rpc/messages/peek.h"

namespace linserve {

absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  absl::Status parsed = Guarded("the message", [&]() -> absl::Status {
    grpc::ProtoBufferReader reader(&bytes);
    if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
    return absl::InvalidArgumentError("the message cannot be read as " + message.GetTypeName() +
                                      " (whose strings are UTF-8)");
  });
  bytes.Clear();
  return parsed;
}

absl::Status ParseQuestion(grpc::ByteBuffer& bytes, google::protobuf::Message& question) {
  constexpr size_t kMostBytes = 64 << 10;
  absl::Status status = Unpack(bytes, kMostBytes, [](int64_t) { return absl::OkStatus(); });
  if (status.ok() && bytes.Length() > kMostBytes) {
    status = absl::InvalidArgumentError("the message has " + std::to_string(bytes.Length()) +
                                        " bytes, expected at most " + std::to_string(kMostBytes) +
                                        " for " + question.GetTypeName());
  } else if (status.ok()) {
    status = DecodedBytes(bytes, MessagePlan::Of(*question.GetDescriptor()), {}).status();
  }
  if (status.ok()) return Parse(bytes, question);
  bytes.Clear();
  return status;
}

absl::StatusOr<int64_t> DecodedBytes(const ServiceContext& service, const grpc::ByteBuffer& bytes,
                                     const MessagePlan& plan) {
  return DecodedBytes(bytes, plan,
                      {.sequences = service.limits.max_sequences_per_request,
                       .bytes = service.inflight->most_bytes()});
}

void KeepIdOnly(grpc::ByteBuffer& bytes, int id_field, google::protobuf::Message& message) {
  const auto* field = message.GetDescriptor()->FindFieldByNumber(id_field);
  message.Clear();
  if (field != nullptr)
    message.GetReflection()->SetString(&message, field, PeekId(bytes, id_field).text);
  bytes.Clear();
}

}  // namespace linserve
