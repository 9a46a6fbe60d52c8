#pragma once

#include <memory>

#include "models/network/network.h"
#include "models/network/params.h"

namespace linserve::linear_attention_transformer {

// The pair of the README of `linear-attention-transformer`: an encoder with return_embeddings and a
// decoder that receives its embeddings as context. params {"encoder": {...}, "decoder": {...}},
// each LinearAttentionTransformerLM's arguments; tensors under "encoder." and "decoder.". x [n]
// token ids with x_mask [n] for the encoder and, as context_mask, for the decoder; y [m] token ids
// with y_mask [m] -> embeddings [m, emb_dim] and y [m, num_tokens] of the decoder.
std::unique_ptr<Network> MakeEncoderDecoder(Params& params);

}  // namespace linserve::linear_attention_transformer
