#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/sentencepiece/vocabulary.h"

namespace linserve {

// Returns the text of pieces, before it is denormalised; ids that are not pieces add nothing, and
// control pieces only if `marks` are asked for.
std::string DecodePieces(const Vocabulary& vocabulary, const std::vector<int64_t>& ids, bool marks);

}  // namespace linserve
