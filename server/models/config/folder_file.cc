#include "models/config/folder_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/strip.h"
#include "core/files/json_file.h"
#include "models/config/config_error.h"

namespace linserve {

nlohmann::json FolderFile(const std::string& directory, const std::string& name) {
  auto document = ReadJson(directory + "/" + name);
  if (document.ok()) return *std::move(document);
  if (absl::IsNotFound(document.status())) return nullptr;
  throw ConfigError(std::string(absl::StripPrefix(document.status().message(), directory + "/")));
}

bool FolderHas(const std::string& directory, const std::string& name) {
  return std::filesystem::exists(directory + "/" + name);
}

}  // namespace linserve
