#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"
#include "models/transformers/options/options.h"

namespace linserve::transformers {

// These are the encoders of the PyPI package `transformers` 5.24.0, with the arguments of its
// configurations (config.json of a Hugging Face folder) and `add_pooling_layer`. They take
// x [n] (input_ids), attention_mask [n] (optional, true = a visible key) and, where the model has
// types of tokens, token_type_ids [n] (optional), and give last_hidden_state [n, hidden_size] and,
// with a pooling layer, pooler_output [hidden_size]. ESM's head that predicts contacts is left out.
//
// Where Nyströmformer's attention is by landmarks, which takes one length alone, what is shorter is
// computed as if it were padded to it and masked. ERNIE takes task_type_ids [n] (optional), too,
// and Longformer global_attention_mask [n] (optional, true = the token sees all others and is seen
// by all).
// JinaBERT is published with code of its own: that of jinaai/jina-bert-implementation or, with
// `qk_norm`, of jinaai/jina-bert-v2-qk-post-norm.
std::unique_ptr<Network> MakeModel(Family family, Params& params);

template <Family family>
std::unique_ptr<Network> MakeModel(Params& params) {
  return MakeModel(family, params);
}

// Makes the encoder that these options describe.
std::unique_ptr<Network> MakeEncoder(Options options);

}  // namespace linserve::transformers
