#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linear_attention_transformer {

// Makes the pair of the README of `linear-attention-transformer`: an encoder with return_embeddings
// and a decoder that receives its embeddings as context. Its params are {"encoder": {...},
// "decoder": {...}}, each LinearAttentionTransformerLM's arguments; its tensors lie under
// "encoder." and "decoder.". It takes x [n] token ids with x_mask [n] for the encoder and, as
// context_mask, for the decoder, and y [m] token ids with y_mask [m]. It gives embeddings [m,
// emb_dim] and y [m, num_tokens] of the decoder.
std::unique_ptr<Network> MakeEncoderDecoder(Params& params);

}  // namespace linserve::linear_attention_transformer
