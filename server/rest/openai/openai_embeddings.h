#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// These functions answer with one vector for each text or sequence of token ids, as embedding APIs
// do: pooled as the model is served (by the mean if it is not), and normalized.

// These answer POST /v1/embeddings and GET /v1/models as OpenAI does.
HttpReply OpenAiEmbeddings(const RestCall& call);
HttpReply OpenAiModels(const RestCall& call);
HttpReply OpenAiModel(const RestCall& call);

}  // namespace linserve
