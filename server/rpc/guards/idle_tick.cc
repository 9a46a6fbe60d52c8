#include "rpc/guards/idle_tick.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kTick(400);

// Calls grpc.health.v1.Health/Check for "": that is an empty message, which needs no generated
// code.
void CheckHealth(grpc::GenericStub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTick);
  grpc::CompletionQueue queue;
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
}

}  // namespace

IdleTick::IdleTick(grpc::Server& server)
    : periodic_([channel = server.InProcessChannel({})] {
        grpc::GenericStub stub(channel);
        CheckHealth(stub);
        return kTick;
      }) {}

}  // namespace linserve
