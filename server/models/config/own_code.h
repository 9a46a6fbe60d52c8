#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace linserve {

// Throws ConfigError where a Hugging Face folder's config.json has its model computed by code of
// its own (`auto_map`), which may do otherwise than the class of this architecture: it says what to
// write where it does not. The code by which some architectures were published is known.
void RefuseOwnCode(const nlohmann::json& document, const std::string& architecture);

// Throws ConfigError if the folder is an adapter of another folder's model.
void RefuseAdapter(const std::string& directory);

// Says which adapters lie in the folder that nothing adds unless it is asked to, neither here nor
// in transformers: those of a model's tasks, as Jina Embeddings v3 has them.
std::vector<std::string> WarningsOfAdapters(const std::string& directory);

}  // namespace linserve
