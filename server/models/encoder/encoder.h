#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::encoder {

// Makes linserve.Encoder, a plain pre-norm encoder whose attention can be swapped: `attention` is
// softmax, efficient, elu, taylor or linformer. Its other parameters are dim, depth, heads (8),
// dim_head (dim/heads), ff_mult (4), causal (false), normalize (true; of elu), k (256) and seq_len
// (of linformer: the longest length), num_tokens, positions (none, learned, sinusoidal or rotary),
// and max_seq_len (the longest length; of learned positions the number). It takes x [n] token ids
// with num_tokens, else [n, dim], and input_mask [n] (optional, true = a visible key), and gives y
// [n, dim], after the final norm.
std::unique_ptr<Network> MakeEncoder(Params& params);

}  // namespace linserve::encoder
