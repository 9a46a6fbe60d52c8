#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "rpc/calls/call_context.h"
#include "rpc/messages/message_plan.h"
#include "rpc/messages/unpack.h"
#include "serving/admission.h"
#include "serving/inflight.h"
#include "serving/service_context.h"

namespace linserve {

// Returns the request as something that may be given up: gRPC holds it to the end of the call, and
// does nothing with it.
inline grpc::ByteBuffer& Taken(const grpc::ByteBuffer* request) {
  return *const_cast<grpc::ByteBuffer*>(request);
}

// Replaces `message` by what `bytes` held, and clears `bytes`, because both together take twice the
// memory. Returns INVALID_ARGUMENT if the bytes were no such message.
absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message& message);

// Parses a question, which is small: a larger one is refused with INVALID_ARGUMENT, undecoded.
absl::Status ParseQuestion(grpc::ByteBuffer& bytes, google::protobuf::Message& question);

// Holds a request, and the place that was reserved for what it takes before it was decoded.
template <typename Message>
struct Received {
  Message message{};
  int64_t bytes = 0;                             // what it takes
  std::optional<Inflight::Reservation> place{};  // nullopt: it is still to be reserved
};

// Returns the bytes that a request takes once it is decoded. INVALID_ARGUMENT if it holds too much
// of something, whatever its model.
absl::StatusOr<int64_t> DecodedBytes(const ServiceContext& service, const grpc::ByteBuffer& bytes,
                                     const MessagePlan& plan);

// Reserves a place for a request that is not decoded yet.
template <typename Message>
absl::Status Reserve(const ServiceContext& service, const Caller& caller,
                     const grpc::ByteBuffer& bytes, Received<Message>& request) {
  const auto decoded = DecodedBytes(service, bytes, MessagePlan::Of<Message>());
  if (!decoded.ok()) return decoded.status();
  auto place = Reserve(service, caller, *decoded);
  if (!place.ok()) return place.status();
  request.bytes = *decoded;
  request.place = *std::move(place);
  return absl::OkStatus();
}

// Stands for the field of an id in messages without one.
inline constexpr int kNoId = 0;

// Sets the id of a message that is not decoded, cut to kMaxIdBytes, and clears its bytes.
void KeepIdOnly(grpc::ByteBuffer& bytes, int id_field, google::protobuf::Message& message);

// Lets a call in: its caller is admitted, and its place reserved, before the message is decoded.
template <typename Message>
Arrival Arrive(const ServiceContext& service, const grpc::ServerContextBase& context,
               grpc::ByteBuffer& bytes, Received<Message>& request) {
  Arrival arrival = Identify(service, context);
  absl::Status& status = arrival.admitted;
  // So gRPC hands over the message of a call that has ended before it was read.
  if (status.ok() && !bytes.Valid()) status = absl::CancelledError("the call ended too early");
  const auto packed = static_cast<int64_t>(bytes.Length());
  Inflight::Reservation unpacked;
  // Nothing is unpacked for a caller who is not let in, and its budget pays for what was.
  if (status.ok()) status = AdmitCaller(service, *arrival.context.caller, packed);
  if (status.ok()) status = UnpackRequest(service, *arrival.context.caller, bytes, unpacked);
  if (status.ok()) arrival.context.caller->Owe(static_cast<int64_t>(bytes.Length()) - packed);
  if (status.ok()) status = Reserve(service, *arrival.context.caller, bytes, request);
  return arrival;
}

// Lets a call in, and decodes its message. Of a message that is refused nothing but its id, the
// field of that number, is read.
template <typename Message>
Arrival Receive(const ServiceContext& service, const grpc::ServerContextBase& context,
                grpc::ByteBuffer& bytes, int id_field, Received<Message>& request) {
  Arrival arrival = Arrive(service, context, bytes, request);
  if (arrival.admitted.ok()) {
    arrival.admitted = Parse(bytes, request.message);
  } else {
    KeepIdOnly(bytes, id_field, request.message);
  }
  return arrival;
}

}  // namespace linserve
