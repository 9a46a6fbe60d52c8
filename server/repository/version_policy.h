#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "repository/repository_scan.h"

namespace linserve {

// Says which of a model's versions are served.
struct VersionChoice {
  int64_t latest = 0;          // number of highest versions; 0: they do not decide
  std::set<int64_t> versions;  // these versions; if it is empty and `latest` is 0: all
};

// Holds a choice for every model, and other choices for some by name.
class VersionPolicy {
 public:
  // Parses "all", "latest", "latest(2)" or "1,3", or several of them with the models that they are
  // for: "latest; ranker=all; embed=1,3". INVALID_ARGUMENT says what was expected.
  static absl::StatusOr<VersionPolicy> Parse(const std::string& text);

  const std::string& text() const { return text_; }  // the text that was parsed

  const VersionChoice& ChoiceFor(const std::string& model) const;

  // Returns the directories of `found` that are to be served, in their order. `found` is sorted by
  // name and version.
  std::vector<ModelDirectory> Choose(const std::vector<ModelDirectory>& found) const;

 private:
  std::string text_ = "all";
  VersionChoice choice_;
  std::map<std::string, VersionChoice> of_model_;
};

}  // namespace linserve
