#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// These answer the paths of text-embeddings-inference for classifiers and re-rankers.

// Scores the classes of {"inputs": "a text"}, of the pair in {"inputs": ["one", "other"]}, or of
// each text and pair in {"inputs": [["a text"], ["one", "other"]]}: the likeliest come first.
HttpReply TeiPredict(const RestCall& call);
// Orders {"texts": [...]} by how well they fit {"query": "..."}, the best first.
HttpReply TeiRerank(const RestCall& call);

}  // namespace linserve
