#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linear_multihead_attention {

// Linear-DETR is DETR's transformer with LinearMultiheadAttention for its attention. An image's
// features are its rows; it comes as a whole and by layer. seq_len is the number of source rows,
// num_queries that of object queries; fewer will do, unless projection_layout is "package" (the
// default is "corrected").

// Takes src, pos_embed [n, d_model], query_embed [q, d_model] and optionally mask [n] (true:
// padding), and gives hs [q, d_model] (with return_intermediate_dec [layers, q, d_model]) and
// memory [n, d_model].
std::unique_ptr<Network> MakeDetrTransformer(Params& params);

// Takes src [n, d_model] and optionally src_key_padding_mask [n] and pos [n, d_model], and gives y
// [n, d_model].
std::unique_ptr<Network> MakeDetrEncoderLayer(Params& params);

// Takes tgt [q, d_model], memory [n, d_model] and optionally tgt_key_padding_mask [q],
// memory_key_padding_mask [n], pos [n, d_model] and query_pos [q, d_model], and gives y [q,
// d_model].
std::unique_ptr<Network> MakeDetrDecoderLayer(Params& params);

}  // namespace linserve::linear_multihead_attention
