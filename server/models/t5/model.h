#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"
#include "models/t5/options.h"

namespace linserve::t5 {

// Makes the encoder of a family as the PyPI package `transformers` 5.24.0 has it: T5EncoderModel
// (Raffel et al. 2019, arXiv:1910.10683), MT5EncoderModel or UMT5EncoderModel, with the arguments
// of its configuration (config.json of a Hugging Face folder). It takes x [n] (input_ids) and
// attention_mask [n] (optional, true = a visible key), and gives last_hidden_state [n, d_model].
std::unique_ptr<Network> MakeEncoder(Family family, Params& params);

template <Family family>
std::unique_ptr<Network> MakeEncoder(Params& params) {
  return MakeEncoder(family, params);
}

}  // namespace linserve::t5
