#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace linserve {

// JSON whose numbers are as short as a float needs: as doubles they would have twice the digits.
using FloatJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, float>;

}  // namespace linserve
