#pragma once

#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// These answer POST /embed, /embed_all, /embed_sparse and /similarity as text-embeddings-inference
// does: with a vector of each sequence, with a vector of each of its tokens, with the weights of
// the words that a sequence stands for, or with how similar texts are to another.
HttpReply TeiEmbed(const RestCall& call);
HttpReply TeiEmbedAll(const RestCall& call);
HttpReply TeiEmbedSparse(const RestCall& call);
HttpReply TeiSimilarity(const RestCall& call);

}  // namespace linserve
