#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace linserve {

// Ids are below this; the largest vocabularies have some 900,000.
inline constexpr int64_t kMostIds = int64_t{1} << 20;
// A token has so many bytes at most. Each byte of a text may begin so long a match.
inline constexpr size_t kLongestToken = 2048;

// Holds the tokens of a model, by their ids and by their texts.
class TokenVocabulary {
 public:
  // Sets what an id stands for. If a text stands twice, its last id counts, as in the package.
  // INVALID_ARGUMENT names an id or a text that is too large.
  absl::Status Add(std::string text, int64_t id);
  // Finds texts from now on. REQUIRES: no further Add().
  void Index();

  // Returns the id of a text; -1 if it is no token. REQUIRES: Index().
  int32_t Find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  // Returns the text of an id; "" if it is none's.
  const std::string& TextOf(int64_t id) const;

  // Returns how many ids there may be: all are below it.
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }
  // Returns how many texts there are. REQUIRES: Index().
  size_t texts() const { return ids_.size(); }
  // Lists the texts with their ids. REQUIRES: Index().
  const absl::flat_hash_map<std::string_view, int32_t>& ids() const { return ids_; }

 private:
  std::vector<std::string> texts_;                       // by id
  std::vector<std::pair<std::string, int32_t>> shared_;  // texts whose id has another one
  absl::flat_hash_map<std::string_view, int32_t> ids_;   // of the texts above
};

}  // namespace linserve
