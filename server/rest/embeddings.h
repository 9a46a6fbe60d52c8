#pragma once

#include "http/http_message.h"
#include "rest/rest_call.h"

namespace linserve {

// One vector for each text or sequence of token ids, as embedding APIs have it: pooled as the model
// is served (by the mean if it is not), and normalized.

// POST /v1/embeddings and GET /v1/models, as OpenAI's.
HttpReply OpenAiEmbeddings(const RestCall& call);
HttpReply OpenAiModels(const RestCall& call);
HttpReply OpenAiModel(const RestCall& call);

// POST /embed, as text-embeddings-inference's.
HttpReply TeiEmbed(const RestCall& call);

}  // namespace linserve
