#include "core/utf8.h"

#include <nlohmann/json.hpp>

namespace linserve {

bool IsUtf8(std::string_view text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace linserve
