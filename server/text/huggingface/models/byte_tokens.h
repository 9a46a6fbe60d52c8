#pragma once

#include <array>
#include <cstdint>

#include "text/huggingface/models/token_vocabulary.h"

namespace linserve {

// Returns the ids of the tokens that name bytes, such as <0x0A>; -1 where there is none.
std::array<int32_t, 256> ByteTokens(const TokenVocabulary& vocabulary);

}  // namespace linserve
