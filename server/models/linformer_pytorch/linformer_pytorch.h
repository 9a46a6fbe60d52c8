#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linformer_pytorch {

// These are the four classes of the PyPI package `linformer-pytorch` 0.19.3, with every constructor
// argument; dropouts are ignored. Linformer and LinformerLM may stand in the package's Padder. All
// take input_mask (false: that row of keys and values is zero) and embeddings_mask (false: that row
// of queries is zero).

// They take x [n, channels] (and in decoder_mode embeddings [n, channels]), and give y [n,
// channels].
std::unique_ptr<Network> MakeAttention(Params& params);
std::unique_ptr<Network> MakeStack(Params& params);

// Takes x [n] token ids (and in decoder_mode embeddings [n, channels]), and gives embeddings [n,
// emb_dim] (before the output layer) and y (logits, or with return_emb the embeddings).
std::unique_ptr<Network> MakeLanguageModel(Params& params);

// Takes x [n] token ids and y [n] (x where it is missing), and gives the decoder's embeddings and
// y. The masks reach the encoder only.
std::unique_ptr<Network> MakeEncoderDecoder(Params& params);

}  // namespace linserve::linformer_pytorch
