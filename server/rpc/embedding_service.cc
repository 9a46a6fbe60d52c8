#include "rpc/embedding_service.h"

#include <chrono>

#include "rpc/convert.h"
#include "rpc/embed_server_call.h"

namespace linserve {
namespace {

// A unary call that is answered at once.
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, RpcMetrics& metrics,
                                 std::chrono::steady_clock::time_point start,
                                 const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  metrics.Finished(static_cast<int>(status.error_code()), std::chrono::steady_clock::now() - start);
  reactor->Finish(status);
  return reactor;
}

}  // namespace

void EmbeddingService::Drain() {
  context_.draining = true;
  streams_.DrainAll();
}

grpc::ServerWriteReactor<v1::EmbedResponse>* EmbeddingService::Embed(
    grpc::CallbackServerContext* context, const v1::EmbedRequest* request) {
  return EmbedServerCall::Start(context_, context, request);
}

grpc::ServerBidiReactor<v1::EmbedRequest, v1::EmbedResponse>* EmbeddingService::EmbedStream(
    grpc::CallbackServerContext* context) {
  return EmbedStreamCall::Start(context_, streams_, context);
}

grpc::ServerUnaryReactor* EmbeddingService::ListModels(grpc::CallbackServerContext* context,
                                                       const v1::ListModelsRequest* /*request*/,
                                                       v1::ListModelsResponse* response) {
  const auto start = std::chrono::steady_clock::now();
  RpcMetrics& metrics = context_.metrics.ForRpc("ListModels");
  metrics.Started();
  for (const auto& model : context_.repository.List()) {
    ToMessage(*model, context_.draining, *response->add_models());
  }
  return Answer(context, metrics, start, grpc::Status::OK);
}

grpc::ServerUnaryReactor* EmbeddingService::GetModel(grpc::CallbackServerContext* context,
                                                     const v1::GetModelRequest* request,
                                                     v1::Model* response) {
  const auto start = std::chrono::steady_clock::now();
  RpcMetrics& metrics = context_.metrics.ForRpc("GetModel");
  metrics.Started();
  const auto model = context_.repository.Find(request->model(), request->version());
  if (model.ok()) ToMessage(**model, context_.draining, *response);
  return Answer(context, metrics, start, ToGrpcStatus(model.status()));
}

}  // namespace linserve
