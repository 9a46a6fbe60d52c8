#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/transformers/context.h"

namespace linserve::transformers {

// These return the factor of each token's row in models that were trained with rows of masked
// tokens left out: it is 0 for a masked one, and for the others of a sequence what makes up for
// there being more or fewer of these than in training. A sequence of masked tokens alone has zeros.
// Source: EsmEmbeddings of transformers 5.24.0.
std::vector<float> TokenFactors(const int64_t* ids, int64_t rows, int64_t mask_token,
                                const Context& context);
// On any device: F32 [rows].
at::Tensor TokenFactors(const at::Tensor& ids, int64_t mask_token, const Context& context);

}  // namespace linserve::transformers
