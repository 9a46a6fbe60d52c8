#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// Answers POST /v1/rerank and /v2/rerank, which OpenAI does not have, as Jina and Cohere do: orders
// {"documents": [...]} by how well they fit {"query": "..."}, the best `top_n` first. Errors are
// OpenAI's, as on all paths under /v1.
HttpReply V1Rerank(const RestCall& call);

}  // namespace linserve
