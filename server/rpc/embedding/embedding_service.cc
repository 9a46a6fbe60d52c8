#include "rpc/embedding/embedding_service.h"

#include "rpc/calls/started.h"
#include "rpc/calls/unary.h"
#include "rpc/embedding/convert.h"
#include "rpc/embedding/embed_server_call.h"
#include "rpc/embedding/embed_stream_call.h"
#include "rpc/embedding/generate_server_call.h"
#include "serving/admission.h"

namespace linserve {

namespace {

using Writer = grpc::ServerWriteReactor<grpc::ByteBuffer>;
using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

void Describe(const ServiceContext& context, const ServedModel& model, v1::Model& message) {
  ToMessage(model, context.draining, message);
  message.set_server_version(context.version);
}

}  // namespace

Writer* EmbeddingService::Embed(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request) {
  return Started<Writer>([&] {
    return ServerStreamCall::Start(std::make_shared<EmbedServerCall>(context_, context),
                                   Taken(request));
  });
}

Writer* EmbeddingService::Generate(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request) {
  return Started<Writer>([&] {
    return ServerStreamCall::Start(std::make_shared<GenerateServerCall>(context_, context),
                                   Taken(request));
  });
}

Stream* EmbeddingService::EmbedStream(grpc::CallbackServerContext* context) {
  return Started<Stream>(
      [&] { return EmbedStreamCall::Start(std::make_shared<EmbedStreamCall>(context_, context)); });
}

grpc::ServerUnaryReactor* EmbeddingService::ListModels(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return AnswerCaller<v1::ListModelsRequest, v1::ListModelsResponse>(
      context, context_, "ListModels", {request, response},
      [&](const Caller& caller, const auto& /*question*/, v1::ListModelsResponse& answer) {
        for (const auto& model : context_.repository.List()) {
          if (!caller.Sees(model->name)) continue;
          Describe(context_, *model, *answer.add_models());
        }
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* EmbeddingService::GetModel(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  return AnswerCaller<v1::GetModelRequest, v1::Model>(
      context, context_, "GetModel", {request, response},
      [&](const Caller& caller, const v1::GetModelRequest& question, v1::Model& answer) {
        const auto model = FindModel(context_, caller, question.model(), question.version());
        if (model.ok()) Describe(context_, **model, answer);
        return model.status();
      });
}

}  // namespace linserve
