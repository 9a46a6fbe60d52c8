#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "access/caller.h"

namespace linserve {

using Sha256 = std::array<uint8_t, 32>;

Sha256 Sha256Of(std::string_view text);

// The tokens of a file, of which only hashes are kept.
class TokenTable {
 public:
  // {"tokens": [{"name": "search", "token": "..." or "sha256": "64 hex digits",
  //              "may": ["infer", "metrics", "control"],           // default: ["infer"]
  //              "models": ["a", "b"],                             // default: all
  //              "requests_per_second": 100, "bytes_per_second": 1e6}]}   // default: no bounds
  // INVALID_ARGUMENT names the token and the key, never a secret. Budgets of tokens that `before`
  // has with equal rates go on.
  static absl::StatusOr<TokenTable> Parse(const std::string& text,
                                          const TokenTable* before = nullptr);

  // Null if there is no such token. In a time that says nothing about those that there are.
  std::shared_ptr<const Caller> Find(std::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Sha256 hash;
    std::shared_ptr<const Caller> caller;
  };

  std::vector<Entry> entries_;
};

}  // namespace linserve
