#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "access/caller.h"
#include "http/http_message.h"
#include "rest/calls/rest_call.h"
#include "serving/service_context.h"

namespace linserve {

// Says how an API answers its callers, and refuses those who may not call.
using RestAnswer = std::function<HttpReply(const RestCall&)>;
using RestRefusal = std::function<HttpReply(const absl::Status&)>;

// Says what a route takes.
struct RouteTraits {
  std::optional<Right> right = Right::kInfer;  // without which no body is let in; nullopt: none
  bool binary = false;                         // bodies may hold binary data
};

// Returns a route for callers who may call, whose bodies are let in while there is room for what
// they become. Their answers tell the server's load, as gRPC's trailers do. `context` must outlive
// it.
HttpRoute RouteOf(ServiceContext& context, const std::string& method, const std::string& pattern,
                  RestAnswer answer, const RestRefusal& refuse, const RouteTraits& traits = {});

// Returns what the HTTP port answers beside its pages and the routes of text-embeddings-inference:
// the REST form of the Open Inference Protocol (/v2/...), and OpenAI's API of embeddings (/v1/...).
// `context` must outlive the routes.
std::vector<HttpRoute> RestRoutes(ServiceContext& context);

// Returns what replies of these APIs have in common.
std::vector<HttpForm> RestForms();

}  // namespace linserve
