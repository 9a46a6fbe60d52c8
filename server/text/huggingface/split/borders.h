#pragma once

#include <cstdint>

#include "text/huggingface/split/pre_tokenizers.h"

namespace linserve {

// Says what is known of the place between two characters.
enum class Border : uint8_t {
  kCut,        // the part splits there, whatever else there is
  kUnknown,    // a later part may split there
  kForbidden,  // what is on one side changes what the part makes of the other
};

// Says whether this part of a pre-tokenizer splits a text between these two characters.
Border BorderOf(const SplitPart& part, char32_t previous, char32_t next);

}  // namespace linserve
