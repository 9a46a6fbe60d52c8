#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/sentencepiece/vocabulary.h"

namespace linserve {

// Returns the text of pieces, before it is denormalised; ids that are not pieces add nothing.
std::string DecodePieces(const Vocabulary& vocabulary, const std::vector<int64_t>& ids);

}  // namespace linserve
