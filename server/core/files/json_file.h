#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "core/files/file.h"

namespace linserve {

// Reads a file of JSON, of 1 MiB at most, with ParseJson(). The errors name the file.
absl::StatusOr<nlohmann::json> ReadJson(const std::string& path,
                                        FileKind kind = FileKind::kRegular);

}  // namespace linserve
