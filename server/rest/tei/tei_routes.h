#pragma once

#include <vector>

#include "http/http_message.h"
#include "serving/service_context.h"

namespace linserve {

// Adds the routes of text-embeddings-inference (TEI) but health and /metrics, which are pages, and
// /v1/embeddings, which is OpenAI's. `context` must outlive them.
void AddTeiRoutes(ServiceContext& context, std::vector<HttpRoute>& routes);

// Gives what is refused under their paths before it comes to a call TEI's form of an error, too.
void AddTeiForms(std::vector<HttpForm>& forms);

}  // namespace linserve
