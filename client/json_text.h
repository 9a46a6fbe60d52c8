#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace linserve {

// What a server says may be no UTF-8, for which dump() would throw. `indent` -1: on one line.
inline std::string JsonText(const nlohmann::json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace linserve
