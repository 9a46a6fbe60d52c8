#pragma once

#include "http/http_message.h"
#include "rpc/service_context.h"

namespace linserve {

// One vector for each sequence of token ids, as embedding APIs have it: pooled as the model is
// served (by the mean if it is not), and normalized.

// POST /v1/embeddings and GET /v1/models, as OpenAI's.
HttpReply OpenAiEmbeddings(ServiceContext& context, const HttpRequest& request);
HttpReply OpenAiModels(ServiceContext& context, const HttpRequest& request);

// POST /embed, as text-embeddings-inference's.
HttpReply TeiEmbed(ServiceContext& context, const HttpRequest& request);

}  // namespace linserve
