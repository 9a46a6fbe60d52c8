#pragma once

#include <nlohmann/json.hpp>

#include "core/signature.h"

namespace linserve {

// {"inputs": [...], "outputs": [...], "limits": [...], "request_is_unit": ...}, with the names that
// Model of embedding.proto has for the same; an axis is its size, or its letter as a text.
nlohmann::json ToJson(const Signature& signature);

}  // namespace linserve
