#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// Answers POST /v1/score and /score, as vLLM does: how well each "text_2" fits its "text_1", which
// are texts or lists of them. One text on either side is for all of the other.
HttpReply V1Score(const RestCall& call);

}  // namespace linserve
