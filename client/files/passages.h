#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace linserve {

// Holds a passage of a document that is about one thing.
struct Passage {
  size_t line = 0;   // where it begins, from 1
  std::string text;  // on one line
};

// Cuts a text at its empty lines, and paragraphs of more than `longest` bytes where a sentence ends
// (or, within a longer sentence, between words, and longer words anywhere). A short line of its
// own, as a heading is, goes with what follows it.
std::vector<Passage> CutIntoPassages(std::string_view text, size_t longest);

}  // namespace linserve
