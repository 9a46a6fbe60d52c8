#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace linserve {

// Returns the text of a JSON value. It takes any bytes, because names from outside stand in
// answers, in whatever encoding.
template <typename Json>
std::string ToText(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
}

}  // namespace linserve
