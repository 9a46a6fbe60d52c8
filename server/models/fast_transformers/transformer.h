#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::fast_transformers {

// These are the models of idiap/fast-transformers 0.4.0 ("Transformers are RNNs", Katharopoulos et
// al. 2020, arXiv:2006.16236), with the keyword arguments of their builders' from_kwargs().
//
// The encoder takes x [n, model_dimensions] and length_mask [n] (optional, true = a visible key),
// the decoder x, memory [m, cross_model_dimensions], x_length_mask [n] and memory_length_mask [m]
// (both optional). They give y [n, model_dimensions]. `feature_map` is a name, beside which its
// arguments stand, or an object of both. In `call`, attn_mask (of decoders x_mask and memory_mask)
// is "FullMask" or "TriangularCausalMask".

std::unique_ptr<Network> MakeEncoder(Params& params);
std::unique_ptr<Network> MakeDecoder(Params& params);

}  // namespace linserve::fast_transformers
