#pragma once

#include <vector>

#include "text/huggingface/split/pre_tokenizers.h"

namespace linserve {

// Divides a piece of a text at the matches of a pattern in it, which are in order, and appends what
// it becomes. `inverted` takes what is between the matches for them.
void DivideAt(const std::vector<ByteRange>& matches, SplitBehavior behavior, bool inverted,
              ByteRange piece, std::vector<ByteRange>& pieces);

}  // namespace linserve
