#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::fairseq {

// Makes the model of the Linformer paper's own code (facebookresearch/fairseq, 3d262bb,
// examples/linformer): linformer_roberta, by fairseq's own arguments. It takes x [n] (src_tokens),
// and gives embeddings [n, encoder_embed_dim], its features, and y [n, vocab_size], the logits of
// its lm_head, or with the call's features_only the features, too.
std::unique_ptr<Network> MakeLinformerRoberta(Params& params);

}  // namespace linserve::fairseq
