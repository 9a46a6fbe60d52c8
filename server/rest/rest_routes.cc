#include "rest/rest_routes.h"

#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "rest/embeddings.h"
#include "rest/http_errors.h"
#include "rest/infer_json.h"
#include "rest/message_json.h"
#include "rest/parse_json.h"
#include "rest/waiting_infer.h"
#include "rpc/inference_queries.h"
#include "rpc/inference_request.h"

namespace linserve {
namespace {

using nlohmann::ordered_json;

// MODEL, and perhaps its version.
constexpr const char* kModel = "/v2/models/([^/]+)(?:/versions/([^/]+))?";

HttpReply JsonReply(const ordered_json& json) { return {.body = ToText(json)}; }

// The answer to a query about the model of the path.
template <typename Request, typename Response>
absl::StatusOr<Response> QueryModel(const ServiceContext& context, const HttpRequest& http) {
  Request request;
  request.set_name(http.captures.at(0));
  request.set_version(http.captures.at(1));
  Response response;
  absl::Status status = Query(context, request, response);
  if (!status.ok()) return status;
  return response;
}

HttpReply ServerMetadata(const ServiceContext& context) {
  inference::ServerMetadataResponse response;
  const absl::Status status = Query(context, inference::ServerMetadataRequest(), response);
  return status.ok() ? JsonReply(ToJson(response)) : ErrorReply(status);
}

HttpReply ModelMetadata(const ServiceContext& context, const HttpRequest& http) {
  const auto response =
      QueryModel<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(context, http);
  return response.ok() ? JsonReply(ToJson(*response)) : ErrorReply(response.status());
}

HttpReply ModelConfig(const ServiceContext& context, const HttpRequest& http) {
  const auto response =
      QueryModel<inference::ModelConfigRequest, inference::ModelConfigResponse>(context, http);
  return response.ok() ? JsonReply(ToJson(response->config())) : ErrorReply(response.status());
}

HttpReply ModelReady(const ServiceContext& context, const HttpRequest& http) {
  const auto model = FindModel(context.repository, http.captures.at(0), http.captures.at(1));
  if (!model.ok()) return ErrorReply(model.status());
  if (context.draining) return ErrorReply(absl::UnavailableError("the server is draining"));
  return JsonReply({{"name", (*model)->name}, {"ready", true}});
}

HttpReply StatisticsOf(const ServiceContext& context, const HttpRequest& http) {
  const auto response =
      QueryModel<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(context,
                                                                                        http);
  return response.ok() ? JsonReply(ToJson(*response)) : ErrorReply(response.status());
}

HttpReply AllStatistics(const ServiceContext& context) {
  inference::ModelStatisticsResponse response;
  const absl::Status status = Query(context, inference::ModelStatisticsRequest(), response);
  return status.ok() ? JsonReply(ToJson(response)) : ErrorReply(status);
}

HttpReply RepositoryIndex(const ServiceContext& context, const HttpRequest& http) {
  inference::RepositoryIndexRequest request;
  if (!http.body.empty()) {
    const auto body = ParseObject(http.body);
    if (!body.ok()) return ErrorReply(body.status());
    request.set_ready(body->value("ready", nlohmann::json()) == true);
  }
  inference::RepositoryIndexResponse response;
  const absl::Status status = Query(context, request, response);
  return status.ok() ? JsonReply(ToJson(response)["models"]) : ErrorReply(status);
}

// Loads or unloads the model of the path, and waits for the end of it.
template <typename Request>
HttpReply Command(const ServiceContext& context, const HttpRequest& http) {
  Request request;
  request.set_model_name(http.captures.at(0));
  if (!http.body.empty()) {
    auto body = ParseObject(http.body);
    if (!body.ok()) return ErrorReply(body.status());
    for (const auto& [name, value] : (*body)["parameters"].items()) {
      (*request.mutable_parameters())[name].set_string_param(ToText(value));
    }
  }
  const auto ended = std::make_shared<std::promise<absl::Status>>();
  Begin(context, request, [ended](const absl::Status& status) { ended->set_value(status); });
  const absl::Status status = ended->get_future().get();
  return status.ok() ? HttpReply{} : ErrorReply(status);
}

HttpReply Infer(ServiceContext& context, const HttpRequest& http) {
  auto asked = ReadInferRequest(http);
  if (!asked.ok()) return ErrorReply(asked.status());
  asked->message.set_model_name(http.captures.at(0));
  asked->message.set_model_version(http.captures.at(1));
  inference::ModelInferRequest message;
  message.Swap(&asked->message);
  const std::string id = message.id();
  const auto answer =
      InferAndWait(context, "/v2/models/infer", http.Header("x-request-id"), std::move(message));
  if (!answer.ok()) return ErrorReply(WithRequestId(answer.status(), id));
  return WriteInferResponse(*answer, *asked);
}

}  // namespace

std::vector<HttpRoute> RestRoutes(ServiceContext& context) {
  const std::string model = kModel;
  std::vector<HttpRoute> routes;
  const auto add = [&](const std::string& method, const std::string& pattern,
                       std::function<HttpReply(ServiceContext&, const HttpRequest&)> answer) {
    routes.push_back(
        {method, pattern, [&context, answer = std::move(answer)](const HttpRequest& request) {
           return answer(context, request);
         }});
  };
  add("GET", "/v2/?", [](auto& of, auto&) { return ServerMetadata(of); });
  add("GET", "/v2/models/stats", [](auto& of, auto&) { return AllStatistics(of); });
  add("GET", model, ModelMetadata);
  add("GET", model + "/config", ModelConfig);
  add("GET", model + "/ready", ModelReady);
  add("GET", model + "/stats", StatisticsOf);
  add("POST", model + "/infer", Infer);
  add("POST", "/v2/repository/index", RepositoryIndex);
  add("POST", "/v2/repository/models/([^/]+)/load", Command<inference::RepositoryModelLoadRequest>);
  add("POST", "/v2/repository/models/([^/]+)/unload",
      Command<inference::RepositoryModelUnloadRequest>);
  add("GET", "/v1/models", OpenAiModels);
  add("POST", "/v1/embeddings", OpenAiEmbeddings);
  add("POST", "/embed", TeiEmbed);
  return routes;
}

}  // namespace linserve
