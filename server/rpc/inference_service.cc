#include "rpc/inference_service.h"

#include "core/quote.h"
#include "rpc/infer_call.h"
#include "rpc/infer_stream_call.h"
#include "rpc/inference_metadata.h"
#include "rpc/inference_request.h"
#include "rpc/inference_statistics.h"
#include "rpc/unary.h"

namespace linserve {
namespace {

absl::Status CheckModelControl(const ServiceContext& context) {
  if (context.draining) {
    return absl::UnavailableError("the server is draining and loads no models");
  }
  if (context.manager != nullptr) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "callers of this server may not load and unload models; it would have to be started with "
      "--allow-model-control");
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
    for (const char* extension :
         {"parameters", "model_configuration", "model_repository", "statistics"}) {
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

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
InferenceService::ModelStreamInfer(grpc::CallbackServerContext* context) {
  return InferStreamCall::Start(std::make_shared<InferStreamCall>(context_, context));
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(
    grpc::CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
    inference::ModelStatisticsResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("ModelStatistics"), [&] {
    if (!request->name().empty()) {
      const auto found = FindModel(context_.repository, request->name(), request->version());
      if (!found.ok()) return found.status();
    }
    for (const auto& model : context_.repository.List()) {
      if (!request->name().empty() && model->name != request->name()) continue;
      if (!request->version().empty() && std::to_string(model->version) != request->version()) {
        continue;
      }
      FillStatistics(*model, *response->add_model_stats());
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(
    grpc::CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
    inference::RepositoryIndexResponse* response) {
  return AnswerAtOnce(context, context_.metrics.ForRpc("RepositoryIndex"), [&] {
    for (const VersionStatus& version : context_.repository.Index()) {
      if (request->ready() && version.state != ModelState::kReady) continue;
      auto& model = *response->add_models();
      model.set_name(version.name);
      model.set_version(std::to_string(version.version));
      model.set_state(version.state == ModelState::kDraining ? "UNLOADING"
                                                             : std::string(Name(version.state)));
      model.set_reason(version.reason);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse* /*response*/) {
  return AnswerLater(context, context_.metrics.ForRpc("RepositoryModelLoad"), [&](auto done) {
    absl::Status status = CheckModelControl(context_);
    for (const auto& [name, parameter] : request->parameters()) {
      status.Update(absl::UnimplementedError(
          "parameter " + Quoted(name) +
          ": models are loaded as they lie in the repository, without overrides"));
    }
    if (!status.ok()) return done(status);
    context_.manager->Load(request->model_name(), done);
  });
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse* /*response*/) {
  return AnswerLater(context, context_.metrics.ForRpc("RepositoryModelUnload"), [&](auto done) {
    // The one parameter that clients send, unload_dependents, means nothing without ensembles.
    const absl::Status status = CheckModelControl(context_);
    if (!status.ok()) return done(status);
    context_.manager->Unload(request->model_name(), done);
  });
}

}  // namespace linserve
