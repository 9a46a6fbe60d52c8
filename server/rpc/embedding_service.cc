#include "rpc/embedding_service.h"

#include "rpc/admission.h"
#include "rpc/convert.h"
#include "rpc/embed_server_call.h"
#include "rpc/embed_stream_call.h"
#include "rpc/generate_call.h"
#include "rpc/unary.h"

namespace linserve {

grpc::ServerWriteReactor<grpc::ByteBuffer>* EmbeddingService::Embed(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return ServerStreamCall::Start(std::make_shared<EmbedServerCall>(context_, context),
                                 Taken(request));
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* EmbeddingService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return ServerStreamCall::Start(std::make_shared<GenerateCall>(context_, context), Taken(request));
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EmbeddingService::EmbedStream(
    grpc::CallbackServerContext* context) {
  return EmbedStreamCall::Start(std::make_shared<EmbedStreamCall>(context_, context));
}

grpc::ServerUnaryReactor* EmbeddingService::ListModels(grpc::CallbackServerContext* context,
                                                       const v1::ListModelsRequest* /*request*/,
                                                       v1::ListModelsResponse* response) {
  return AnswerCaller(context, *context_.access, context_.metrics.ForRpc("ListModels"),
                      [&](const Caller& caller) {
                        for (const auto& model : context_.repository.List()) {
                          if (!caller.Sees(model->name)) continue;
                          ToMessage(*model, context_.draining, *response->add_models());
                        }
                        return absl::OkStatus();
                      });
}

grpc::ServerUnaryReactor* EmbeddingService::GetModel(grpc::CallbackServerContext* context,
                                                     const v1::GetModelRequest* request,
                                                     v1::Model* response) {
  return AnswerCaller(
      context, *context_.access, context_.metrics.ForRpc("GetModel"), [&](const Caller& caller) {
        const auto model = FindModel(context_, caller, request->model(), request->version());
        if (model.ok()) ToMessage(**model, context_.draining, *response);
        return model.status();
      });
}

}  // namespace linserve
