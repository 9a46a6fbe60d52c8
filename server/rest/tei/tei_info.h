#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// Answers GET /info as text-embeddings-inference does.
HttpReply TeiInfo(const RestCall& call);

}  // namespace linserve
