#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace linserve {

// Writes JSON. What a server says may not be UTF-8, for which dump() would throw. An `indent` of -1
// puts all on one line.
inline std::string JsonText(const nlohmann::json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace linserve
