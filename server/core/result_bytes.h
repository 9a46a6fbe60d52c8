#pragma once

#include <cstdint>

#include "core/item.h"
#include "core/signature.h"

namespace linserve {

// Bytes of the outputs that are asked for; without a fault for any item, valid or not.
int64_t ResultBytes(const Signature& signature, const Item& item);

}  // namespace linserve
