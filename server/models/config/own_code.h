#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace linserve {

// Throws ConfigError where a Hugging Face folder's config.json has its model computed by code of
// its own (`auto_map`), which may do otherwise than the class of this architecture: it says what to
// write where it does not. The code by which some architectures were published is known.
void RefuseOwnCode(const nlohmann::json& document, const std::string& architecture);

}  // namespace linserve
