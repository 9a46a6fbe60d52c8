#include "text/huggingface/models/token_neighbours.h"

#include <algorithm>

#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

template <typename Item>
void SortUnique(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  items.shrink_to_fit();
}

}  // namespace

TokenNeighbours::TokenNeighbours(const TokenVocabulary& vocabulary) {
  for (const auto& [text, id] : vocabulary.ids()) {
    Character previous = CharacterAt(text, 0);
    if (previous.bytes == text.size()) known_.push_back(previous.code);
    for (size_t at = previous.bytes; at < text.size();) {
      const Character next = CharacterAt(text, at);
      pairs_.push_back(PairOf(previous.code, next.code));
      previous = next;
      at += next.bytes;
    }
  }
  SortUnique(pairs_);
  SortUnique(known_);
}

bool TokenNeighbours::IsKnown(char32_t code) const {
  return std::binary_search(known_.begin(), known_.end(), code);
}

bool TokenNeighbours::CanCut(char32_t previous, char32_t next) const {
  return (IsKnown(previous) || IsKnown(next)) &&
         !std::binary_search(pairs_.begin(), pairs_.end(), PairOf(previous, next));
}

}  // namespace linserve
