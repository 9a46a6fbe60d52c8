#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace linserve {

// Is a part of what two texts become together: a mark, or all ids of one of the texts.
struct PairPiece {
  enum class Kind : uint8_t { kMark, kFirst, kSecond };

  Kind kind = Kind::kMark;
  int64_t mark = 0;  // its id
  int64_t type = 0;  // of each of its ids
};

// Says how two texts that are read together become one sequence of ids: which marks stand before,
// between and after them, and the types that tell the model the one from the other.
struct PairTemplate {
  // Returns how many of the ids are marks.
  size_t marks() const;

  std::vector<PairPiece> pieces;  // each text just once
};

// Holds the first of two texts once it is read. Many others may be read together with it.
struct FirstText {
  std::vector<int64_t> ids;  // those that may stay
  size_t count = 0;          // of all that were read
};

// Returns how many ids of each text stay, of which both together may have `most`, as the strategy
// longest_first of the package `tokenizers` has it: the shorter text is kept whole if it has at
// most half of them, or else each has half, of which the longer one has the odd id; of two that are
// equally long the second has it.
std::pair<size_t, size_t> LongestFirst(size_t first, size_t second, size_t most);

}  // namespace linserve
