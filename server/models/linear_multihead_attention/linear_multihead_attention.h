#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linear_multihead_attention {

// Makes LinearMultiheadAttention of kuixu/Linear-Multihead-Attention (f85ebdd), with
// torch.nn.MultiheadAttention's arguments and seq_len, proj_k, param_sharing (none, layerwise, and
// headwise, which its authors left out), and projection_layout: "package" (the default) computes
// what the class computes, which mixes the sequences of a call; "corrected" what it meant. It takes
// query [n, embed_dim], key [m, kdim], value [m, vdim], and optionally key_padding_mask [m] and
// attn_mask [num_heads, n, proj_k]. It gives y [n, embed_dim] and, unless the call has need_weights
// false, weights [n, slots].
std::unique_ptr<Network> MakeAttention(Params& params);

}  // namespace linserve::linear_multihead_attention
