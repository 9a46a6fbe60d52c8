#pragma once

#include <cstdint>

#include "core/sequence/item.h"
#include "core/sequence/signature.h"

namespace linserve {

// Returns the bytes of the outputs that are asked for. Safe to call with any item, valid or not.
int64_t ResultBytes(const Signature& signature, const Item& item);

}  // namespace linserve
