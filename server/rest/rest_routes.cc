#include "rest/rest_routes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/strings/quote.h"
#include "core/threads/guarded.h"
#include "http/http_limits.h"
#include "rest/calls/http_errors.h"
#include "rest/calls/request_ids.h"
#include "rest/calls/rest_call.h"
#include "rest/oip/infer_json.h"
#include "rest/oip/open_inference.h"
#include "rest/openai/openai_embeddings.h"
#include "rest/openai/openai_form.h"
#include "rest/openai/v1_rerank.h"
#include "rest/openai/v1_score.h"
#include "rpc/calls/call_context.h"
#include "serving/admission.h"

namespace linserve {
namespace {

// Matches MODEL, and perhaps its version.
constexpr const char* kModel = "/v2/models/([^/]+)(?:/versions/([^/]+))?";

// Answers for Triton's extensions that are not there, which a client would take for a wrong
// address.
HttpReply NoExtension(const RestCall& call) {
  return ErrorReply(absl::UnimplementedError(
      "the extension " + Quoted(call.http.captures.at(0)) +
      " is not supported; tensors are sent in the body, and GET /v2 lists the extensions"));
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

// Lets a request in without its body, for which room is to be taken as it comes.
absl::StatusOr<Inflight::Reservation> LetIn(const ServiceContext& context, const Caller& caller,
                                            const RouteTraits& traits) {
  constexpr int64_t kMostOfCaller = HttpLimits{}.threads / 2;
  absl::Status may;
  if (traits.right == Right::kInfer) {
    may = AdmitCaller(context, caller, 0);
  } else if (traits.right) {
    may = caller.May(*traits.right);
  }
  if (!may.ok()) return may;
  // An address may be a proxy's, of many callers.
  if (!caller.has_token()) return context.inflight->ReserveBytes(caller.name());
  return context.inflight->ReserveBody(caller.name(), kMostOfCaller);
}

// Lets in the body of a caller who may call, while there is room for what the body becomes.
HttpGate GateOf(const ServiceContext& context, const HttpRequest& request,
                const RestRefusal& refuse, const RouteTraits& traits) {
  const auto caller = context.access->Authenticate(request.Header("authorization"), request.peer);
  auto let_in = caller.ok() ? LetIn(context, **caller, traits) : caller.status();
  if (!let_in.ok()) return [refusal = refuse(let_in.status())](size_t) { return refusal; };
  return
      [held = std::make_shared<Inflight::Reservation>(*std::move(let_in)), caller = *caller, refuse,
       json = JsonBytes(request, traits.binary)](size_t piece) mutable -> std::optional<HttpReply> {
        const auto bytes = static_cast<int64_t>(piece);
        caller->Owe(bytes);
        const int64_t text = std::min(json, bytes);
        json -= text;
        const absl::Status status = held->Grow(RoomFor(text, bytes));
        if (status.ok()) return std::nullopt;
        return refuse(status);
      };
}

}  // namespace

HttpRoute RouteOf(ServiceContext& context, const std::string& method, const std::string& pattern,
                  RestAnswer answer, const RestRefusal& refuse, const RouteTraits& traits) {
  return {method, pattern,
          [&context, answer = std::move(answer), refuse, traits](const HttpRequest& request) {
            const auto caller =
                context.access->Authenticate(request.Header("authorization"), request.peer);
            if (!caller.ok()) return refuse(caller.status());
            const auto bytes = static_cast<int64_t>(request.body.size());
            const int64_t room = RoomFor(std::min(JsonBytes(request, traits.binary), bytes), bytes);
            HttpReply reply = answer({context, request, *caller, room});
            RunGuarded("a load report", [&] {
              reply.headers.emplace_back(kLoadReportKey,
                                         absl::Base64Escape(LoadReport(context.load)));
            });
            return reply;
          },
          [&context, refuse, traits](const HttpRequest& request) {
            return GateOf(context, request, refuse, traits);
          }};
}

std::vector<HttpRoute> RestRoutes(ServiceContext& context) {
  for (const char* rpc : {"/v2/models/infer", "/v1/embeddings", "/v1/rerank", "/v1/score"}) {
    context.metrics.ForRpc(rpc);  // so that its series are there before its first call
  }
  const std::string model = kModel;
  std::vector<HttpRoute> routes;
  const auto refuse = [](const absl::Status& status) { return ErrorReply(status); };
  const auto add = [&](const std::string& method, const std::string& pattern, RestAnswer answer,
                       const RouteTraits& traits = {}) {
    routes.push_back(RouteOf(context, method, pattern, std::move(answer), refuse, traits));
  };
  add("GET", "/v2/?", ServerMetadata);
  add("GET", "/v2/models/stats", StatisticsOfServer);
  add("GET", model, ModelMetadata);
  add("GET", model + "/config", ModelConfig);
  add("GET", model + "/ready", ModelReady);
  add("GET", model + "/stats", StatisticsOfModel);
  add("POST", model + "/infer", Infer, {.binary = true});
  add("POST", "/v2/repository/index", RepositoryIndex, {.right = std::nullopt});
  add("POST", "/v2/repository/models/([^/]+)/load", LoadModel, {.right = Right::kControl});
  add("POST", "/v2/repository/models/([^/]+)/unload", UnloadModel, {.right = Right::kControl});
  for (const char* method : {"GET", "POST"}) {
    add(method, "/v2/(?:models/[^/]+/)?(systemsharedmemory|cudasharedmemory|trace|logging)(?:/.*)?",
        NoExtension);
  }
  add("GET", "/v1/models", OpenAiModels);
  add("GET", "/v1/models/(.+)", OpenAiModel);
  for (const char* path : {"/v1/embeddings", "/embeddings"}) add("POST", path, OpenAiEmbeddings);
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) add("POST", path, V1Rerank);
  for (const char* path : {"/v1/score", "/score"}) add("POST", path, V1Score);
  return routes;
}

std::vector<HttpForm> RestForms() {
  return {OpenAiForm("/v1/"),
          OpenAiForm("/v2/rerank"),
          OpenAiForm("/embeddings"),
          OpenAiForm("/score"),
          {.prefix = "/", .begin = NameRequest, .end = NameReply}};
}

}  // namespace linserve
