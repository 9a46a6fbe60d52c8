#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"
#include "models/transformers/options.h"

namespace linserve::transformers {

// These are the encoders of the PyPI package `transformers` 5.24.0, with the arguments of its
// configurations (config.json of a Hugging Face folder) and `add_pooling_layer`. They take
// x [n] (input_ids), attention_mask [n] (optional, true = a visible key) and, where the model has
// types of tokens, token_type_ids [n] (optional), and give last_hidden_state [n, hidden_size] and,
// with a pooling layer, pooler_output [hidden_size].

std::unique_ptr<Network> MakeBert(Params& params);        // BertModel (Devlin et al. 2018)
std::unique_ptr<Network> MakeRoberta(Params& params);     // RobertaModel and XLMRobertaModel
std::unique_ptr<Network> MakeDistilBert(Params& params);  // DistilBertModel
std::unique_ptr<Network> MakeMpnet(Params& params);       // MPNetModel (Song et al. 2020)
std::unique_ptr<Network> MakeModernBert(Params& params);  // ModernBertModel (Warner et al. 2024)
// NystromformerModel (Xiong et al. 2021). Where its attention is by landmarks, which takes one
// length alone, what is shorter is computed as if it were padded to it and masked.
std::unique_ptr<Network> MakeNystromformer(Params& params);
std::unique_ptr<Network> MakeNomicBert(Params& params);
std::unique_ptr<Network> MakeGte(Params& params);
std::unique_ptr<Network> MakeDeberta(Params& params);    // DebertaModel (He et al. 2020)
std::unique_ptr<Network> MakeDebertaV2(Params& params);  // of its second and third version
std::unique_ptr<Network> MakeElectra(Params& params);    // ElectraModel (Clark et al. 2020)
std::unique_ptr<Network> MakeAlbert(Params& params);     // AlbertModel (Lan et al. 2019)
// JinaBertModel (Günther et al. 2023), which is published with code of its own: that of
// jinaai/jina-bert-implementation or, with `qk_norm`, of jinaai/jina-bert-v2-qk-post-norm.
std::unique_ptr<Network> MakeJinaBert(Params& params);
// LongformerModel (Beltagy et al. 2020). It takes global_attention_mask [n] besides (optional, true
// = the token sees all others and is seen by all).
std::unique_ptr<Network> MakeLongformer(Params& params);
std::unique_ptr<Network> MakeBigBird(Params& params);  // BigBirdModel (Zaheer et al. 2020)

// Makes the encoder that these options describe.
std::unique_ptr<Network> MakeEncoder(Options options);

}  // namespace linserve::transformers
