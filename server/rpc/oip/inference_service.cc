#include "rpc/oip/inference_service.h"

#include <memory>
#include <string>

#include "rpc/calls/started.h"
#include "rpc/calls/unary.h"
#include "rpc/oip/infer_call.h"
#include "rpc/oip/infer_stream_call.h"
#include "rpc/oip/inference_queries.h"

namespace linserve {
namespace {

using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

template <typename Request, typename Response>
grpc::ServerUnaryReactor* AnswerQuery(const std::string& rpc, ServiceContext& service,
                                      grpc::CallbackServerContext* context,
                                      const RawQuestion& raw) {
  return AnswerCaller<Request, Response>(
      context, service, rpc, raw,
      [&](const Caller& caller, const Request& request, Response& response) {
        return Query(service, caller, request, response);
      });
}

// Both commands are answered by an empty message.
template <typename Request>
grpc::ServerUnaryReactor* AnswerCommand(const std::string& rpc, ServiceContext& service,
                                        grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes, grpc::ByteBuffer* response) {
  return AnswerLater(context, service.metrics, rpc, [&](const Done& done) {
    const auto caller = CallerOf(*context, service);
    if (!caller.ok()) return done(caller.status());
    Request request;
    *response = WireMessage().Take();
    const absl::Status parsed = ParseQuestion(Taken(bytes), request);
    if (!parsed.ok()) return done(parsed);
    Begin(service, **caller, request, done);
  });
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return AnswerAnybody<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      context, context_.metrics, "ServerLive", {request, response},
      [](const auto& /*question*/, inference::ServerLiveResponse& answer) {
        answer.set_live(true);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return AnswerAnybody<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      context, context_.metrics, "ServerReady", {request, response},
      [&](const auto& question, auto& answer) { return Query(context_, question, answer); });
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return AnswerQuery<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      "ModelReady", context_, context, {request, response});
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request,
                                                           grpc::ByteBuffer* response) {
  return AnswerQuery<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      "ServerMetadata", context_, context, {request, response});
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request,
                                                          grpc::ByteBuffer* response) {
  return AnswerQuery<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      "ModelMetadata", context_, context, {request, response});
}

grpc::ServerUnaryReactor* InferenceService::ModelConfig(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return AnswerQuery<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      "ModelConfig", context_, context, {request, response});
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            grpc::ByteBuffer* response) {
  return AnswerQuery<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
      "ModelStatistics", context_, context, {request, response});
}

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            grpc::ByteBuffer* response) {
  return AnswerQuery<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      "RepositoryIndex", context_, context, {request, response});
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return Started<grpc::ServerUnaryReactor>([&] {
    return UnaryCall::Start(std::make_shared<InferCall>(context_, context, response),
                            Taken(request));
  });
}

Stream* InferenceService::ModelStreamInfer(grpc::CallbackServerContext* context) {
  return Started<Stream>(
      [&] { return InferStreamCall::Start(std::make_shared<InferStreamCall>(context_, context)); });
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerCommand<inference::RepositoryModelLoadRequest>("RepositoryModelLoad", context_,
                                                              context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerCommand<inference::RepositoryModelUnloadRequest>("RepositoryModelUnload", context_,
                                                                context, request, response);
}

}  // namespace linserve
