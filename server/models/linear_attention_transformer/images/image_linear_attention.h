#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linear_attention_transformer {

// Makes ImageLinearAttention of the PyPI package `linear-attention-transformer` 0.19.1, with every
// constructor argument: chan, chan_out, kernel_size, padding, stride, key_dim, value_dim, heads,
// norm_queries. It takes x [chan, h, w] and optionally context [chan, c, d], of which only the
// number of positions counts, and gives y [chan_out, h, w].
std::unique_ptr<Network> MakeImageLinearAttention(Params& params);

}  // namespace linserve::linear_attention_transformer
