#include "text/pair_template.h"

#include <algorithm>

namespace linserve {

size_t PairTemplate::marks() const {
  return static_cast<size_t>(
      std::count_if(pieces.begin(), pieces.end(),
                    [](const PairPiece& piece) { return piece.kind == PairPiece::Kind::kMark; }));
}

std::pair<size_t, size_t> LongestFirst(size_t first, size_t second, size_t most) {
  if (first + second <= most) return {first, second};
  const size_t shorter = std::min({first, second, most / 2});
  const size_t longer = most - shorter;
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace linserve
