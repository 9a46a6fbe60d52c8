#include "rpc/oip/inference_queries.h"

#include <cstdint>
#include <optional>

#include "core/strings/quote.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_metadata.h"
#include "rpc/oip/inference_statistics.h"
#include "serving/admission.h"

namespace linserve {
namespace {

absl::Status CheckModelControl(const ServiceContext& context, const Caller& caller,
                               const std::string& model) {
  if (context.draining) {
    return absl::UnavailableError("the server is draining and loads no models");
  }
  if (context.manager != nullptr) {
    absl::Status status = caller.May(Right::kControl);
    if (!status.ok()) context.metrics.Refused(Refusal::kForbidden);
    status.Update(CheckModel(context, caller, model));
    return status;
  }
  return absl::PermissionDeniedError(
      "callers of this server may not load and unload models; it would have to be started with "
      "--allow-model-control");
}

}  // namespace

absl::Status Query(const ServiceContext& context, const inference::ServerReadyRequest& /*request*/,
                   inference::ServerReadyResponse& response) {
  response.set_ready(context.ready && !context.draining);
  return absl::OkStatus();
}

absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelReadyRequest& request,
                   inference::ModelReadyResponse& response) {
  const auto model = FindInferModel(context, caller, request.name(), request.version());
  response.set_ready(model.ok() && !context.leaving);
  const bool answered = absl::IsNotFound(model.status()) || absl::IsUnavailable(model.status());
  return answered ? absl::OkStatus() : model.status();
}

absl::Status Query(const ServiceContext& context, const Caller& /*caller*/,
                   const inference::ServerMetadataRequest& /*request*/,
                   inference::ServerMetadataResponse& response) {
  response.set_name("linserve");
  response.set_version(context.version);
  for (const char* extension : {"binary_tensor_data", "parameters", "model_configuration",
                                "model_repository", "sequence", "statistics"}) {
    response.add_extensions(extension);
  }
  return absl::OkStatus();
}

absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelMetadataRequest& request,
                   inference::ModelMetadataResponse& response) {
  const auto model = FindInferModel(context, caller, request.name(), request.version());
  if (!model.ok()) return model.status();
  FillMetadata(**model, response);
  for (const auto& version : context.repository.List()) {
    if (version->name == (*model)->name) response.add_versions(std::to_string(version->version));
  }
  return absl::OkStatus();
}

absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelConfigRequest& request,
                   inference::ModelConfigResponse& response) {
  const auto model = FindInferModel(context, caller, request.name(), request.version());
  if (model.ok()) FillConfig(**model, *response.mutable_config());
  return model.status();
}

absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::ModelStatisticsRequest& request,
                   inference::ModelStatisticsResponse& response) {
  std::optional<int64_t> version;
  std::string name;  // its own one, whatever it was called
  if (!request.name().empty()) {
    const auto found = FindInferModel(context, caller, request.name(), request.version());
    if (!found.ok()) return found.status();
    name = (*found)->name;
    if (!request.version().empty()) version = (*found)->version;
  }
  for (const auto& model : context.repository.List()) {
    const bool named = (name.empty() || name == model->name) && caller.Sees(model->name);
    if (named && model->version == version.value_or(model->version))
      FillStatistics(*model, *response.add_model_stats());
  }
  return absl::OkStatus();
}

absl::Status Query(const ServiceContext& context, const Caller& caller,
                   const inference::RepositoryIndexRequest& request,
                   inference::RepositoryIndexResponse& response) {
  for (const VersionStatus& version : context.repository.Index()) {
    if (request.ready() && version.state != ModelState::kReady) continue;
    if (!caller.Sees(version.name)) continue;
    auto& model = *response.add_models();
    model.set_name(version.name);
    model.set_version(std::to_string(version.version));
    model.set_state(version.state == ModelState::kDraining ? "UNLOADING"
                                                           : std::string(Name(version.state)));
    model.set_reason(version.reason);
  }
  return absl::OkStatus();
}

void Begin(const ServiceContext& context, const Caller& caller,
           const inference::RepositoryModelLoadRequest& request, const Done& done) {
  absl::Status status = CheckModelControl(context, caller, request.model_name());
  for (const auto& [name, parameter] : request.parameters()) {
    status.Update(absl::UnimplementedError(
        "parameter " + Quoted(name) +
        ": models are loaded as they lie in the repository, without overrides"));
  }
  if (!status.ok()) return done(status);
  context.manager.load()->Load(request.model_name(), done);
}

void Begin(const ServiceContext& context, const Caller& caller,
           const inference::RepositoryModelUnloadRequest& request, const Done& done) {
  // Clients send one parameter, unload_dependents, which means nothing without ensembles.
  const absl::Status status = CheckModelControl(context, caller, request.model_name());
  if (!status.ok()) return done(status);
  context.manager.load()->Unload(request.model_name(), done);
}

}  // namespace linserve
