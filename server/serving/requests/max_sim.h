#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace linserve {

// Returns the sum over the query's rows of the largest product with a row of the document: the
// score of late interaction (ColBERT; Khattab and Zaharia 2020, arXiv:2004.12832). One without rows
// scores below all others. REQUIRES: both are F32 [·, width].
float MaxSim(const Tensor& query, const Tensor& document);

}  // namespace linserve
