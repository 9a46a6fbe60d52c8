#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::performer_pytorch {

// These are two classes of the PyPI package `performer-pytorch` 1.1.4 (FAVOR+), with every
// constructor argument (options.h). Both take mask [n], and with cross_attend context [m, dim] and
// context_mask [m].

// Makes Performer: x [n, dim] -> y [n, dim].
std::unique_ptr<Network> MakeStack(Params& params);

// Makes PerformerLM: x [n] token ids -> embeddings [n, dim] (before the output layer) and y [n,
// num_tokens] (logits; called with return_encodings, the embeddings).
std::unique_ptr<Network> MakeLanguageModel(Params& params);

}  // namespace linserve::performer_pytorch
