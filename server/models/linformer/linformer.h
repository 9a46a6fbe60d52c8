#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::linformer {

// These are the three classes of the PyPI package `linformer` 0.2.3 (Wang et al. 2020,
// arXiv:2006.04768), with every constructor argument: dim, seq_len, k, heads, dim_head,
// one_kv_head, share_kv, and for the stacks depth, reversible and (LinformerLM) num_tokens. dropout
// is ignored.

// Makes LinformerSelfAttention: x [n, dim] (and context [m, dim], m <= seq_len) -> y [n, dim].
std::unique_ptr<Network> MakeSelfAttention(Params& params);

// Makes Linformer: x [n, dim] -> y [n, dim], n <= seq_len.
std::unique_ptr<Network> MakeStack(Params& params);

// Makes LinformerLM: x [n] token ids -> embeddings [n, dim] (before the output layer) and y [n,
// num_tokens] (logits).
std::unique_ptr<Network> MakeLanguageModel(Params& params);

}  // namespace linserve::linformer
