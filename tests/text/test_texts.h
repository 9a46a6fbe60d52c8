#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.h"

namespace linserve {

inline const std::string kTextData = DataFile("text/");

// Returns texts as the Python package encodes them (sentencepiece 0.2.1).
inline nlohmann::json EncodedTexts() {
  return nlohmann::json::parse(std::ifstream(kTextData + "encoded.json"));
}

}  // namespace linserve
