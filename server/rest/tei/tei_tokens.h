#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// These answer POST /tokenize and /decode as text-embeddings-inference does: with the tokens of
// texts, and with the texts of token ids.
HttpReply TeiTokenize(const RestCall& call);
HttpReply TeiDecode(const RestCall& call);

}  // namespace linserve
