#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/sentencepiece/vocabulary.h"

namespace linserve {

// Holds a piece of a normalised text, and its id.
struct ChosenPiece {
  std::string_view text;
  int32_t id = 0;
};

// Cuts a normalised text into pieces, in the way that the vocabulary's model says. `score` is that
// of the texts before it, and becomes that of both: what a text scores depends by rounding on where
// the sum begins.
std::vector<ChosenPiece> ChoosePieces(const Vocabulary& vocabulary, std::string_view text,
                                      float& score);

// Are ChoosePieces() for models of PieceMethod::kUnigram and kBpe. They take time in proportion to
// the text, and the second the logarithm of that as well.
std::vector<ChosenPiece> ChooseUnigram(const Vocabulary& vocabulary, std::string_view text,
                                       float& score);
std::vector<ChosenPiece> ChooseBpe(const Vocabulary& vocabulary, std::string_view text);

}  // namespace linserve
