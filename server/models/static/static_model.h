#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::static_models {

// Makes a StaticEmbedding of sentence-transformers 6.2.0, whose vectors are the means of their
// tokens' rows in a table. Its arguments are num_embeddings and embedding_dim. The outputs are
// sentence_embedding [width], zeros where there is no token, and the rows, token_embeddings [n,
// width].
std::unique_ptr<Network> MakeStaticEmbedding(Params& params);

// Makes a StaticModel of model2vec 0.10.0, which is the same but that tokens may share rows
// (vocabulary_quantization says how many there are), and that these may have weights (weighted).
// The other arguments are vocab_size and hidden_dim.
std::unique_ptr<Network> MakeStaticModel(Params& params);

}  // namespace linserve::static_models
