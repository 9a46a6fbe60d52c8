#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// Says where one version of a model lies: REPOSITORY/NAME/VERSION, or REPOSITORY/NAME (version 1).
// Names that begin with a dot are no models.
struct ModelDirectory {
  std::string name;
  int64_t version = 1;
  std::string path;
  std::string refused{};  // why it must not be loaded: its files lie elsewhere than they may
};

// Says which directory in a repository is no model, or no version of one, and why.
struct PassedOver {
  std::string directory;
  std::string because;

  auto operator<=>(const PassedOver&) const = default;
};

// Says where models are.
struct RepositoryRoot {
  std::string path = "models";
  bool follow_links = false;  // to files that lie elsewhere
  // Names the model where the path is that of a model itself; empty: its directory does.
  std::string model_name{};
};

// Returns the model directories below a root, by name and version, or the root itself where that is
// one. NOT_FOUND says what was looked for if there is none. What is passed over is put into
// `passed_over`, if that is there.
absl::StatusOr<std::vector<ModelDirectory>> ScanRepository(
    const RepositoryRoot& root, std::vector<PassedOver>* passed_over = nullptr);

// Says in the log where the models are named as versions are: their repository looks like the
// directory of a single one.
void WarnOfVersions(const std::string& root, const std::vector<ModelDirectory>& found);

// Returns where the latest of the versions below `path` lies; `path` itself if it is a model, or
// has none.
std::string LatestVersion(const std::string& path);

// Returns a stamp that tells whether the files of a model directory are still those that were
// loaded: their sizes and times. A directory that cannot be read has a stamp unlike that of any
// other.
std::string StampOf(const ModelDirectory& directory);

// Returns the stamps of all of a model's versions.
std::string StampsOf(const std::vector<ModelDirectory>& found, const std::string& model);

}  // namespace linserve
