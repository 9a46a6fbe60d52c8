#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// Where one version of a model lies: REPOSITORY/NAME/VERSION, or REPOSITORY/NAME (version 1). Names
// that begin with a dot are no models.
struct ModelDirectory {
  std::string name;
  int64_t version = 1;
  std::string path;
};

// Where the files of a model may lie: below the repository, or wherever links lead.
enum class Links : uint8_t { kInside, kAnywhere };

// The model directories below `root`, by name and version, without those whose files lie elsewhere
// than they may. NOT_FOUND says what was looked for if there is none.
absl::StatusOr<std::vector<ModelDirectory>> ScanRepository(const std::string& root,
                                                           Links links = Links::kInside);

// What tells whether the files of a model directory are still those that were loaded: their sizes
// and times. Other than that of any directory if it cannot be read.
std::string FingerprintOf(const ModelDirectory& directory);

// The size of its weights on disk; 0 if there are none.
int64_t WeightBytesOf(const ModelDirectory& directory);

}  // namespace linserve
