#pragma once

#include <cstdint>
#include <vector>

#include "text/huggingface/models/token_vocabulary.h"

namespace linserve {

// Knows which characters stand side by side in some token.
class TokenNeighbours {
 public:
  explicit TokenNeighbours(const TokenVocabulary& vocabulary);

  // Returns whether the tokens of a text on both sides of the border between these characters do
  // not depend on each other: no token reaches across, nor do two characters become one unknown
  // token.
  bool CanCut(char32_t previous, char32_t next) const;

 private:
  bool IsKnown(char32_t code) const;

  std::vector<uint64_t> pairs_;
  std::vector<char32_t> known_;  // characters that are tokens by themselves
};

}  // namespace linserve
