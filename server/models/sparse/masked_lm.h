#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"
#include "models/transformers/options/options.h"

namespace linserve {

// Makes the …ForMaskedLM of a family, as transformers 5.24.0 has it, with SpladePooling of
// sentence-transformers 6.2.0 behind it. Its arguments are those of the encoder,
// tie_word_embeddings, of ModernBert classifier_bias, classifier_activation and decoder_bias, and
// those of the pooling: pooling_strategy (max or sum) and activation_function (relu or log1p_relu).
// Its first output is sparse_embedding [vocab_size], and the encoder's rows follow.
std::unique_ptr<Network> MakeSparseEncoder(transformers::Family family, Params& params);

template <transformers::Family family>
std::unique_ptr<Network> MakeSparseEncoder(Params& params) {
  return MakeSparseEncoder(family, params);
}

}  // namespace linserve
