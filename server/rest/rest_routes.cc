#include "rest/rest_routes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/status/json_text.h"
#include "core/threads/guarded.h"
#include "rest/answering.h"
#include "rest/embeddings.h"
#include "rest/http_errors.h"
#include "rest/infer_json.h"
#include "rest/json/json_members.h"
#include "rest/message_json.h"
#include "rest/openai_form.h"
#include "rest/request_ids.h"
#include "rest/rest_call.h"
#include "rpc/calls/call_context.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_queries.h"
#include "rpc/oip/inference_request.h"
#include "serving/admission.h"

namespace linserve {
namespace {

using nlohmann::ordered_json;

// Matches MODEL, and perhaps its version.
constexpr const char* kModel = "/v2/models/([^/]+)(?:/versions/([^/]+))?";

HttpReply JsonReply(const ordered_json& message) { return {.body = JsonText(message)}; }

// Answers a query about the model of the path.
template <typename Request, typename Response>
absl::StatusOr<Response> QueryModel(const RestCall& call) {
  Request request;
  request.set_name(call.http.captures.at(0));
  request.set_version(call.http.captures.at(1));
  Response response;
  absl::Status status = Query(call.service, *call.caller, request, response);
  if (!status.ok()) return status;
  return response;
}

HttpReply ServerMetadata(const RestCall& call) {
  inference::ServerMetadataResponse response;
  const absl::Status status =
      Query(call.service, *call.caller, inference::ServerMetadataRequest(), response);
  return status.ok() ? JsonReply(ToJson(response)) : ErrorReply(status);
}

HttpReply ModelMetadata(const RestCall& call) {
  const auto response =
      QueryModel<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(call);
  return response.ok() ? JsonReply(ToJson(*response)) : ErrorReply(response.status());
}

HttpReply ModelConfig(const RestCall& call) {
  const auto response =
      QueryModel<inference::ModelConfigRequest, inference::ModelConfigResponse>(call);
  return response.ok() ? JsonReply(ToJson(response->config())) : ErrorReply(response.status());
}

HttpReply ModelReady(const RestCall& call) {
  const auto model = FindInferModel(call.service, *call.caller, call.http.captures.at(0),
                                    call.http.captures.at(1));
  if (!model.ok()) return ErrorReply(model.status());
  if (call.service.draining) return ErrorReply(absl::UnavailableError("the server is draining"));
  return JsonReply({{"name", (*model)->name}, {"ready", true}});
}

HttpReply StatisticsOf(const RestCall& call) {
  const auto response =
      QueryModel<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(call);
  return response.ok() ? JsonReply(ToJson(*response)) : ErrorReply(response.status());
}

HttpReply AllStatistics(const RestCall& call) {
  inference::ModelStatisticsResponse response;
  const absl::Status status =
      Query(call.service, *call.caller, inference::ModelStatisticsRequest(), response);
  return status.ok() ? JsonReply(ToJson(response)) : ErrorReply(status);
}

HttpReply RepositoryIndex(const RestCall& call) {
  inference::RepositoryIndexRequest request;
  if (!call.http.body.empty()) {
    JsonReader reader(call.http.body, WantedBy(call));
    bool ready = false;
    const absl::Status read =
        ReadBody(reader, {{"ready", [&] { return ReadBool(reader, "ready", ready); }}});
    if (!read.ok()) return ErrorReply(read);
    request.set_ready(ready);
  }
  inference::RepositoryIndexResponse response;
  const absl::Status status = Query(call.service, *call.caller, request, response);
  return status.ok() ? JsonReply(ToJson(response)["models"]) : ErrorReply(status);
}

// Reads the names of the parameters of a command, whose values mean nothing here.
template <typename Request>
absl::Status ReadCommand(const RestCall& call, Request& request) {
  if (call.http.body.empty()) return absl::OkStatus();
  JsonReader reader(call.http.body, WantedBy(call));
  auto& parameters = *request.mutable_parameters();
  const auto read_name = [&](const std::string& name) -> absl::Status {
    if (absl::Status bounded = CheckName("a parameter's name", name); !bounded.ok()) return bounded;
    if (parameters.size() < kMaxParameters) parameters[name];
    return reader.Skip().status();
  };
  const auto read_parameters = [&] {
    if (reader.Next() == JsonReader::Kind::kNull) return reader.Skip().status();
    absl::Status object =
        reader.Expect(JsonReader::Kind::kObject, "\"parameters\": expected an object");
    return object.ok() ? reader.Object(read_name) : object;
  };
  return ReadBody(reader, {{"parameters", read_parameters}});
}

// Loads or unloads the model of the path, and waits for the end of that.
template <typename Request>
HttpReply Command(const RestCall& call) {
  Request request;
  request.set_model_name(call.http.captures.at(0));
  if (absl::Status read = ReadCommand(call, request); !read.ok()) return ErrorReply(read);
  const auto ended = std::make_shared<std::promise<absl::Status>>();
  Begin(call.service, *call.caller, request,
        [ended](const absl::Status& status) { ended->set_value(status); });
  const absl::Status status = ended->get_future().get();
  return status.ok() ? HttpReply{} : ErrorReply(status);
}

absl::StatusOr<JsonInferRequest> ReadInfer(const RestCall& call) {
  if (absl::Status admitted = Admit(call); !admitted.ok()) return admitted;
  auto asked = ReadInferRequest(call);
  if (!asked.ok()) return asked;
  asked->message.set_model_name(call.http.captures.at(0));
  asked->message.set_model_version(call.http.captures.at(1));
  return asked;
}

// Has what was asked computed, and waits for that. The message is no more there afterwards.
absl::StatusOr<InferAnswer> AskInfer(const RestCall& call, const std::string& id,
                                     absl::StatusOr<JsonInferRequest>& asked) {
  const auto answered = std::make_shared<std::promise<absl::StatusOr<InferAnswer>>>();
  const auto state = std::make_shared<InferRequestState>(
      SideOf(call, "/v2/models/infer"), ContextOf(call, id), /*chunks=*/false,
      [answered](absl::StatusOr<InferAnswer> answer) { answered->set_value(std::move(answer)); });
  if (asked.ok()) {
    state->AnswerTakes(asked->AnswerBytes());
    const auto size = static_cast<int64_t>(asked->message.ByteSizeLong());
    state->Submit(call.service, {.message = std::move(asked->message), .bytes = size});
  } else {
    state->Refuse(asked.status());
  }
  return answered->get_future().get();
}

HttpReply Infer(const RestCall& call) {
  auto asked = ReadInfer(call);
  const std::string id = asked.ok() ? asked->message.id() : "";
  const auto answer = AskInfer(call, id, asked);
  HttpReply reply = ReplyWith<InferAnswer>(
      answer, [&](const absl::Status& status) { return ErrorReply(WithRequestId(status, id)); },
      [&](const InferAnswer& whole) { return WriteInferResponse(whole, *asked); });
  reply.headers.emplace_back(kRequestId, RequestIdOf(call, id));
  return reply;
}

// Returns how much of a body is JSON; the rest is binary data.
int64_t JsonBytes(const HttpRequest& request, bool binary) {
  constexpr uint64_t kAll = std::numeric_limits<int64_t>::max();
  const uint64_t bytes = binary ? JsonLength(request).value_or(kAll) : kAll;
  return static_cast<int64_t>(std::min(bytes, kAll));
}

// Returns what parsing so many bytes takes, of which `text` are JSON.
int64_t RoomFor(int64_t text, int64_t bytes) {
  // A digit and its comma are read into a number of eight bytes, of which UINT64 is copied twice;
  // binary data is copied once.
  constexpr int64_t kParsed = 1 + 3 * 8 / 2;
  constexpr int64_t kCopied = 2;
  return kParsed * text + kCopied * (bytes - text);
}

// Lets in the body of a caller who may call, while there is room for what the body becomes.
HttpGate GateOf(const ServiceContext& context, const HttpRequest& request,
                const RestRefusal& refuse, bool binary) {
  const auto caller = context.access->Authenticate(request.Header("authorization"), request.peer);
  if (!caller.ok()) return [refusal = refuse(caller.status())](size_t) { return refusal; };
  const auto held =
      std::make_shared<Inflight::Reservation>(context.inflight->ReserveBytes((*caller)->name()));
  return [held, refuse,
          json = JsonBytes(request, binary)](size_t piece) mutable -> std::optional<HttpReply> {
    const auto bytes = static_cast<int64_t>(piece);
    const int64_t text = std::min(json, bytes);
    json -= text;
    const absl::Status status = held->Grow(RoomFor(text, bytes));
    if (status.ok()) return std::nullopt;
    return refuse(status);
  };
}

}  // namespace

HttpRoute RouteOf(ServiceContext& context, const std::string& method, const std::string& pattern,
                  RestAnswer answer, const RestRefusal& refuse, bool binary) {
  return {method, pattern,
          [&context, answer = std::move(answer), refuse, binary](const HttpRequest& request) {
            const auto caller =
                context.access->Authenticate(request.Header("authorization"), request.peer);
            if (!caller.ok()) return refuse(caller.status());
            const auto bytes = static_cast<int64_t>(request.body.size());
            const int64_t room = RoomFor(std::min(JsonBytes(request, binary), bytes), bytes);
            HttpReply reply = answer({context, request, *caller, room});
            RunGuarded("a load report", [&] {
              reply.headers.emplace_back(kLoadReportKey,
                                         absl::Base64Escape(LoadReport(context.load)));
            });
            return reply;
          },
          [&context, refuse, binary](const HttpRequest& request) {
            return GateOf(context, request, refuse, binary);
          }};
}

std::vector<HttpRoute> RestRoutes(ServiceContext& context) {
  for (const char* rpc : {"/v2/models/infer", "/v1/embeddings"}) {
    context.metrics.ForRpc(rpc);  // so that its series are there before its first call
  }
  const std::string model = kModel;
  std::vector<HttpRoute> routes;
  const auto refuse = [](const absl::Status& status) { return ErrorReply(status); };
  const auto add = [&](const std::string& method, const std::string& pattern, RestAnswer answer,
                       bool binary = false) {
    routes.push_back(RouteOf(context, method, pattern, std::move(answer), refuse, binary));
  };
  add("GET", "/v2/?", ServerMetadata);
  add("GET", "/v2/models/stats", AllStatistics);
  add("GET", model, ModelMetadata);
  add("GET", model + "/config", ModelConfig);
  add("GET", model + "/ready", ModelReady);
  add("GET", model + "/stats", StatisticsOf);
  add("POST", model + "/infer", Infer, true);
  add("POST", "/v2/repository/index", RepositoryIndex);
  add("POST", "/v2/repository/models/([^/]+)/load", Command<inference::RepositoryModelLoadRequest>);
  add("POST", "/v2/repository/models/([^/]+)/unload",
      Command<inference::RepositoryModelUnloadRequest>);
  add("GET", "/v1/models", OpenAiModels);
  add("GET", "/v1/models/([^/]+)", OpenAiModel);
  for (const char* path : {"/v1/embeddings", "/embeddings"}) add("POST", path, OpenAiEmbeddings);
  return routes;
}

std::vector<HttpForm> RestForms() {
  return {OpenAiForm("/v1/"),
          OpenAiForm("/embeddings"),
          {.prefix = "/", .begin = NameRequest, .end = NameReply}};
}

}  // namespace linserve
