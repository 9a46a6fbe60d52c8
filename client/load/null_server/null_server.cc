#include "client/load/null_server/null_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <utility>

#include "client/library/channel.h"
#include "client/library/infer_wire.h"
#include "client/library/wire.h"

namespace linserve {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

absl::StatusOr<std::string> BytesIn(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  const grpc::Status status = buffer.DumpToSingleSlice(&slice);
  if (!status.ok()) return ToAbsl(status);
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

// Makes a call of any RPC, which takes one request and keeps what comes back.
class Recording : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Recording(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
            const std::string& request, std::chrono::milliseconds timeout)
      : stub_(channel), request_(ToBuffer(request)) {
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
    StartWriteLast(&request_, {});
    StartRead(&message_);
    StartCall();
  }

  absl::StatusOr<RecordedAnswer> Await() {
    absl::Status status = ended_->get_future().get();
    if (!status.ok()) return status;
    return std::move(answer_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    auto bytes = BytesIn(message_);
    if (bytes.ok()) answer_.push_back(*std::move(bytes));
    StartRead(&message_);
  }
  void OnDone(const grpc::Status& status) override {
    const auto ended = ended_;  // it outlives this
    ended->set_value(ToAbsl(status));
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  RecordedAnswer answer_;
  std::shared_ptr<std::promise<absl::Status>> ended_ =
      std::make_shared<std::promise<absl::Status>>();
};

// Answers one call: reads its request, and writes the messages one after the other.
class Answering : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answering(const std::vector<grpc::ByteBuffer>& messages) : messages_(messages) {
    StartRead(&request_);
  }

 private:
  void OnReadDone(bool ok) override { ok ? WriteNext() : Finish(grpc::Status::OK); }
  void OnWriteDone(bool ok) override { ok ? WriteNext() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

  void WriteNext() {
    if (next_ == messages_.size()) return Finish(grpc::Status::OK);
    const grpc::ByteBuffer* message = &messages_[next_++];
    if (next_ < messages_.size()) return StartWrite(message);
    StartWriteAndFinish(message, {}, grpc::Status::OK);
  }

  const std::vector<grpc::ByteBuffer>& messages_;
  grpc::ByteBuffer request_;
  size_t next_ = 0;
};

class AnsweringService : public grpc::CallbackGenericService {
 public:
  explicit AnsweringService(const RecordedAnswer& answer) {
    for (const std::string& message : answer) messages_.push_back(ToBuffer(message));
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new Answering(messages_);  // gRPC ends it by OnDone()
  }

  std::vector<grpc::ByteBuffer> messages_;
};

}  // namespace

absl::StatusOr<RecordedAnswer> RecordAnswer(const ClientOptions& options, const EmbedCall& call) {
  const auto channel = MakeChannel(options);
  if (options.protocol == Protocol::kLinserve) {
    return Recording(channel, "/linserve.v1.EmbeddingService/Embed",
                     EncodeRequest(call).SerializeAsString(), options.timeout)
        .Await();
  }
  const auto request = EncodeInferRequest(call);
  if (!request.ok()) return request.status();
  return Recording(channel, "/inference.GRPCInferenceService/ModelInfer",
                   request->SerializeAsString(), options.timeout)
      .Await();
}

struct NullServer::Impl {
  std::unique_ptr<grpc::CallbackGenericService> service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

NullServer::NullServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NullServer::~NullServer() { impl_->server->Shutdown(std::chrono::system_clock::now()); }

int NullServer::port() const { return impl_->port; }

absl::StatusOr<std::unique_ptr<NullServer>> NullServer::Start(const RecordedAnswer& answer) {
  auto impl = std::make_unique<Impl>();
  impl->service = std::make_unique<AnsweringService>(answer);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &impl->port);
  builder.RegisterCallbackGenericService(impl->service.get());
  builder.SetMaxReceiveMessageSize(-1);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || impl->port == 0) {
    return absl::UnavailableError("no port of 127.0.0.1 is free for a server to measure with");
  }
  return std::unique_ptr<NullServer>(new NullServer(std::move(impl)));
}

}  // namespace linserve
