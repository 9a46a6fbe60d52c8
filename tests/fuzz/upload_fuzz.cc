#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "fuzz/fuzz_pieces.h"
#include "fuzz/fuzz_server.h"
#include "linserve/v1/embedding.pb.h"
#include "rpc/grpc_server.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

// Serves the models of FuzzServer() to callers of gRPC.
struct Served {
  std::unique_ptr<GrpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
};

Served& Serve() {
  static Served& served = *[] {
    GrpcOptions options;
    options.address.port = 0;
    options.limits.max_requests_per_stream = 4;
    auto server = GrpcServer::Start(options, FuzzServer().repository, FuzzServer().metrics);
    if (!server.ok()) std::abort();
    const std::string target = "127.0.0.1:" + std::to_string((*server)->port());
    auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
    return new Served{*std::move(server), std::move(channel)};
  }();
  return served;
}

// Makes one call of EmbedStream: sends all messages, and reads what comes back to its end.
class StreamCall {
 public:
  StreamCall() : stub_(Serve().channel) {
    call_ = stub_.PrepareCall(&context_, "/linserve.v1.EmbeddingService/EmbedStream", &queue_);
    call_->StartCall(nullptr);
    Wait();
  }

  void Send(const std::string& message) {
    const grpc::Slice slice(message);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Wait();  // false where the stream has ended, as it does with bytes that are no request
  }

  void HalfClose() {
    call_->WritesDone(nullptr);
    Wait();
  }

  bool Read(v1::EmbedResponse& response) {
    grpc::ByteBuffer bytes;
    call_->Read(&bytes, nullptr);
    grpc::Slice slice;
    if (!Wait() || !bytes.DumpToSingleSlice(&slice).ok()) return false;
    return response.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  }

  void Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

}  // namespace
}  // namespace linserve

// Sends pieces of the bytes as the messages of one stream, in which sequences may come in chunks.
// Checks that the stream comes to its end, whatever they are, that nothing is answered more often
// than it was sent, and that nothing is left of them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  linserve::StreamCall call;
  int sent = 0;  // sequences, and requests without any
  for (const std::string& message : linserve::PiecesOf(data, size)) {
    linserve::v1::EmbedRequest request;
    const bool parsed = request.ParseFromString(message);
    sent += parsed ? std::max(1, request.sequences_size()) : 1;
    call.Send(message);
  }
  call.HalfClose();
  int answered = 0;
  linserve::v1::EmbedResponse response;
  while (call.Read(response)) answered += response.last() ? 1 : 0;
  call.Finish();
  if (answered > sent) std::abort();
  auto& inflight = *linserve::Serve().server->context().inflight;
  if (!linserve::WaitUntil([&] { return inflight.requests() == 0; })) std::abort();
  return 0;
}
