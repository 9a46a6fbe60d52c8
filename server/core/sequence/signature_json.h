#pragma once

#include <nlohmann/json.hpp>

#include "core/sequence/signature.h"

namespace linserve {

// Writes {"inputs": [...], "outputs": [...], "limits": [...], "request_is_unit": ...}, with the
// names that the fields of Model have in embedding.proto. An axis is its size, or its letter as a
// text.
nlohmann::json ToJson(const Signature& signature);

}  // namespace linserve
