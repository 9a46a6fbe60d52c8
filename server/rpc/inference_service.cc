#include "rpc/inference_service.h"

#include <string>

#include "rpc/infer_call.h"
#include "rpc/infer_stream_call.h"
#include "rpc/inference_queries.h"
#include "rpc/unary.h"

namespace linserve {
namespace {

template <typename Request, typename Response>
grpc::ServerUnaryReactor* AnswerQuery(const std::string& rpc, ServiceContext& service,
                                      grpc::CallbackServerContext* context, const Request* request,
                                      Response* response) {
  return AnswerCaller(
      context, *service.access, service.metrics.ForRpc(rpc),
      [&](const Caller& caller) { return Query(service, caller, *request, *response); });
}

template <typename Request>
grpc::ServerUnaryReactor* AnswerCommand(const std::string& rpc, ServiceContext& service,
                                        grpc::CallbackServerContext* context,
                                        const Request* request) {
  return AnswerLater(context, service.metrics.ForRpc(rpc), [&](const Done& done) {
    const auto caller = CallerOf(*context, *service.access);
    if (!caller.ok()) return done(caller.status());
    Begin(service, **caller, *request, done);
  });
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const inference::ServerLiveRequest*,
                                                       inference::ServerLiveResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ServerLive"), [&] {
    response->set_live(true);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(
    grpc::CallbackServerContext* context, const inference::ServerReadyRequest* request,
    inference::ServerReadyResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ServerReady"),
                      [&] { return Query(context_, *request, *response); });
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const inference::ModelReadyRequest* request,
                                                       inference::ModelReadyResponse* response) {
  return AnswerQuery("ModelReady", context_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest* request,
    inference::ServerMetadataResponse* response) {
  return AnswerQuery("ServerMetadata", context_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(
    grpc::CallbackServerContext* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  return AnswerQuery("ModelMetadata", context_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::ModelConfig(
    grpc::CallbackServerContext* context, const inference::ModelConfigRequest* request,
    inference::ModelConfigResponse* response) {
  return AnswerQuery("ModelConfig", context_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return InferCall::Start(context_, context, Taken(request), response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* InferenceService::ModelStreamInfer(
    grpc::CallbackServerContext* context) {
  return InferStreamCall::Start(std::make_shared<InferStreamCall>(context_, context));
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(
    grpc::CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
    inference::ModelStatisticsResponse* response) {
  return AnswerQuery("ModelStatistics", context_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(
    grpc::CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
    inference::RepositoryIndexResponse* response) {
  return AnswerQuery("RepositoryIndex", context_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse* /*response*/) {
  return AnswerCommand("RepositoryModelLoad", context_, context, request);
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse* /*response*/) {
  return AnswerCommand("RepositoryModelUnload", context_, context, request);
}

}  // namespace linserve
