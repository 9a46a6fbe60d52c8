#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linear_attention_transformer {

// These are two classes of the PyPI package `linear-attention-transformer` 0.19.1, with every
// constructor argument (options.h) and the wrapper Autopadder. Both take input_mask [n], and
// context [m, dim] with context_mask [m] if receives_context is set.

// Makes LinearAttentionTransformer: x [n, dim] -> y [n, dim].
std::unique_ptr<Network> MakeStack(Params& params);

// Makes LinearAttentionTransformerLM: x [n] token ids -> embeddings [n, emb_dim] (before the output
// layer) and y [n, num_tokens] (logits; with return_embeddings the embeddings).
std::unique_ptr<Network> MakeLanguageModel(Params& params);

}  // namespace linserve::linear_attention_transformer
