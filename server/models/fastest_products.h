#pragma once

#include "core/tensor/dtype.h"
#include "models/network/parameters.h"

namespace linserve {

// Returns the type, F32, BF16 or, where it is allowed, I8, in which this CPU multiplies blocks of
// rows by a network's matrices fastest: measured for their shapes, which takes some milliseconds,
// and told to the log. The answer for the same shapes stays the same while the process lives, so
// that all replicas of a model compute alike.
DType FastestProducts(const ParameterList& parameters, bool int8_allowed);

}  // namespace linserve
