#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "access/caller.h"

namespace linserve {

// Holds the tokens of a file; only their hashes are kept.
class TokenTable {
 public:
  // Parses a file of this form:
  // {"tokens": [{"name": "search", "token": "..." or "sha256": "64 hex digits",
  //              "may": ["infer", "metrics", "control"],           // default: ["infer"]
  //              "models": ["a", "b"],                             // default: all
  //              "best_priority": 2,                               // default: 2, the usual one
  //              "requests_per_second": 100, "bytes_per_second": 1e6}]}   // default: no bounds
  // INVALID_ARGUMENT names the token and the key, never a secret. Budgets of tokens that `before`
  // has with equal rates go on.
  static absl::StatusOr<TokenTable> Parse(const std::string& text,
                                          const TokenTable* before = nullptr);

  // Finds a caller by its token; null if there is no such token. The time that it takes says
  // nothing about the tokens that there are.
  std::shared_ptr<const Caller> Find(std::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string hash;  // SHA-256
    std::shared_ptr<const Caller> caller;
  };

  std::vector<Entry> entries_;
};

}  // namespace linserve
