#pragma once

#include <vector>

#include "http/http_message.h"
#include "serving/service_context.h"

namespace linserve {

// Returns what the HTTP port answers beside its pages: the REST form of the Open Inference Protocol
// (/v2/...), and the embedding APIs of OpenAI (/v1/...) and text-embeddings-inference (/embed).
// `context` must outlive the routes.
std::vector<HttpRoute> RestRoutes(ServiceContext& context);

// Returns what replies of these APIs have in common.
std::vector<HttpForm> RestForms();

}  // namespace linserve
