#include "rpc/calls/unary.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

#include "inference/grpc_service.grpc.pb.h"

namespace linserve {
namespace {

using inference::GRPCInferenceService;
using inference::ServerLiveRequest;
using inference::ServerLiveResponse;
using FillAnswer = std::function<absl::Status(const ServerLiveRequest&, ServerLiveResponse&)>;

class LiveService
    : public GRPCInferenceService::WithRawCallbackMethod_ServerLive<GRPCInferenceService::Service> {
 public:
  explicit LiveService(FillAnswer answer) : answer_(std::move(answer)) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override {
    return AnswerAnybody<ServerLiveRequest, ServerLiveResponse>(context, metrics_, "ServerLive",
                                                                {request, response}, answer_);
  }

 private:
  Metrics metrics_{{}};
  const FillAnswer answer_;
};

// Calls a server that answers like that. `extra` bytes of a field that nobody knows are sent.
grpc::Status Call(FillAnswer answer, size_t extra = 0) {
  LiveService service(std::move(answer));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto stub = GRPCInferenceService::NewStub(server->InProcessChannel({}));
  ServerLiveRequest request;
  const std::string unknown(extra, 'a');
  if (extra > 0) {
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(9, unknown);
  }
  ServerLiveResponse response;
  grpc::ClientContext context;
  return stub->ServerLive(&context, request, &response);
}

TEST(Unary, AnswersWithTheStatus) {
  EXPECT_TRUE(Call([](const auto&, auto&) { return absl::OkStatus(); }).ok());
  const grpc::Status status = Call([](const auto&, auto&) { return absl::NotFoundError("x"); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "x");
}

TEST(Unary, AnswersWithAStatusWhateverIsThrown) {
  EXPECT_EQ(Call([](const auto&, auto&) -> absl::Status { throw std::bad_alloc(); }).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(
      Call([](const auto&, auto&) -> absl::Status { throw std::runtime_error("x"); }).error_code(),
      grpc::StatusCode::INTERNAL);
}

TEST(Unary, DecodesNoQuestionThatIsLarge) {
  const FillAnswer answer = [](const auto&, auto&) { return absl::OkStatus(); };
  EXPECT_TRUE(Call(answer, 60000).ok());
  const grpc::Status status = Call(answer, 70000);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("expected at most 65536"), std::string::npos);
}

}  // namespace
}  // namespace linserve
