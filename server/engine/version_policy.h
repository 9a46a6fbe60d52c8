#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/repository_scan.h"

namespace linserve {

// Which of a model's versions are served.
struct VersionChoice {
  int64_t latest = 0;          // so many of the highest; 0: not by this
  std::set<int64_t> versions;  // these; empty and `latest` 0: all
};

// A choice for every model, and others for some by name.
class VersionPolicy {
 public:
  // "all", "latest", "latest(2)" or "1,3", or several of them with the models that they are for:
  // "latest; ranker=all; embed=1,3". INVALID_ARGUMENT says what was expected.
  static absl::StatusOr<VersionPolicy> Parse(const std::string& text);

  const VersionChoice& ChoiceFor(const std::string& model) const;

  // Those of `found` that are to be served, in their order. `found` is sorted by name and version.
  std::vector<ModelDirectory> Choose(const std::vector<ModelDirectory>& found) const;

 private:
  VersionChoice choice_;
  std::map<std::string, VersionChoice> of_model_;
};

}  // namespace linserve
