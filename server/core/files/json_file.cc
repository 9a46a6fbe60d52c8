#include "core/files/json_file.h"

#include <nlohmann/json.hpp>

#include "core/json/json_text.h"

namespace linserve {

absl::StatusOr<nlohmann::json> ReadJson(const std::string& path, FileKind kind) {
  constexpr size_t kLongest = 1 << 20;
  const absl::StatusOr<std::string> text = ReadFile(path, kLongest, kind);
  if (!text.ok()) return text.status();
  absl::StatusOr<nlohmann::json> parsed = ParseJson(*text);
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(path + ": " + std::string(parsed.status().message()));
}

}  // namespace linserve
