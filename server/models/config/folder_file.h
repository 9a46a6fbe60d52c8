#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace linserve {

// Reads a file of JSON in a Hugging Face folder; null if it is not there. Throws ConfigError, as
// all that reads such a folder does: its text begins with the file's name in the folder.
nlohmann::json FolderFile(const std::string& directory, const std::string& name);

// Says whether a Hugging Face folder has a file of this name.
bool FolderHas(const std::string& directory, const std::string& name);

}  // namespace linserve
