#include "rpc/inference_service.h"

#include "rpc/infer_call.h"
#include "rpc/inference_metadata.h"
#include "rpc/inference_request.h"
#include "rpc/unary.h"

namespace linserve {

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const inference::ServerLiveRequest*,
                                                       inference::ServerLiveResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ServerLive"), [&] {
    response->set_live(true);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const inference::ServerReadyRequest*,
                                                        inference::ServerReadyResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ServerReady"), [&] {
    response->set_ready(context_.ready && !context_.draining);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const inference::ModelReadyRequest* request,
                                                       inference::ModelReadyResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ModelReady"), [&] {
    const auto model = FindModel(context_.repository, request->name(), request->version());
    response->set_ready(model.ok() && !context_.draining);
    return absl::IsInvalidArgument(model.status()) ? model.status() : absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest*,
    inference::ServerMetadataResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ServerMetadata"), [&] {
    response->set_name("linserve");
    response->set_version(context_.version);
    for (const char* extension : {"parameters", "model_configuration"}) {
      response->add_extensions(extension);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(
    grpc::CallbackServerContext* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ModelMetadata"), [&] {
    const auto model = FindModel(context_.repository, request->name(), request->version());
    if (model.ok()) FillMetadata(**model, *response);
    return model.status();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelConfig(
    grpc::CallbackServerContext* context, const inference::ModelConfigRequest* request,
    inference::ModelConfigResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ModelConfig"), [&] {
    const auto model = FindModel(context_.repository, request->name(), request->version());
    if (model.ok()) FillConfig(**model, *response->mutable_config());
    return model.status();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const inference::ModelInferRequest* request,
                                                       inference::ModelInferResponse* response) {
  return InferCall::Start(context_, context, request, response);
}

}  // namespace linserve
