#include "rest/oip/open_inference.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/json/json_text.h"
#include "core/status/draining.h"
#include "rest/calls/answering.h"
#include "rest/calls/http_errors.h"
#include "rest/json/json_members.h"
#include "rest/oip/infer_json.h"
#include "rest/oip/message_json.h"
#include "rpc/calls/call_context.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_queries.h"
#include "rpc/oip/inference_request.h"
#include "serving/admission.h"

namespace linserve {
namespace {

using nlohmann::ordered_json;

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
  const auto status = Await<absl::Status>(
      [&](const auto& done) { Begin(call.service, *call.caller, request, done); });
  return status.ok() ? HttpReply{} : ErrorReply(status);
}

absl::StatusOr<JsonInferRequest> ReadInfer(const RestCall& call, std::string& id) {
  auto asked = ReadInferRequest(call, id);
  if (!asked.ok()) return asked;
  asked->message.set_model_name(call.http.captures.at(0));
  asked->message.set_model_version(call.http.captures.at(1));
  return asked;
}

// Has what was asked computed, and waits for that. The message is no more there afterwards.
absl::StatusOr<InferAnswer> AskInfer(const RestCall& call, const std::string& id,
                                     absl::StatusOr<JsonInferRequest>& asked) {
  return Await<absl::StatusOr<InferAnswer>>([&](const auto& done) {
    const auto state = std::make_shared<InferRequestState>(
        SideOf(call, "/v2/models/infer"), ContextOf(call, id), /*chunks=*/false, done);
    if (asked.ok()) {
      state->AnswerTakes(asked->AnswerBytes());
      const auto size = static_cast<int64_t>(asked->message.ByteSizeLong());
      state->Submit(call.service, {.message = std::move(asked->message), .bytes = size});
    } else {
      state->Refuse(asked.status());
    }
  });
}

}  // namespace

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
  if (call.service.leaving) return ErrorReply(DrainingError());
  return JsonReply({{"name", (*model)->name}, {"ready", true}});
}

HttpReply StatisticsOfModel(const RestCall& call) {
  const auto response =
      QueryModel<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(call);
  return response.ok() ? JsonReply(ToJson(*response)) : ErrorReply(response.status());
}

HttpReply StatisticsOfServer(const RestCall& call) {
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

HttpReply Infer(const RestCall& call) {
  std::string id;
  auto asked = ReadInfer(call, id);
  const auto answer = AskInfer(call, id, asked);
  HttpReply reply = ReplyWith<InferAnswer>(
      answer,
      [&](const absl::Status& status) {
        return ErrorReply(WithRequestId(status, RequestIdOf(call, id)));
      },
      [&](const InferAnswer& whole) { return WriteInferResponse(whole, *asked); });
  reply.headers.emplace_back(kRequestId, RequestIdOf(call, id));
  return reply;
}

HttpReply LoadModel(const RestCall& call) {
  return Command<inference::RepositoryModelLoadRequest>(call);
}

HttpReply UnloadModel(const RestCall& call) {
  return Command<inference::RepositoryModelUnloadRequest>(call);
}

}  // namespace linserve
