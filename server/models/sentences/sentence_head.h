#pragma once

#include "core/sequence/signature.h"
#include "models/config/sentence_modules.h"
#include "models/sentences/head.h"

namespace linserve {

// Returns the head that the Dense modules of sentence-transformers are: its output is
// sentence_embedding, made of the rows of the encoder's first output, pooled as the modules say; or
// token_embeddings, which are those rows.
// Throws ConfigError for modules whose widths do not fit together.
Head SentenceHead(const Signature& encoder, const SentenceModules& modules);

}  // namespace linserve
