#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/huggingface/patterns/pattern.h"

namespace linserve {

// Collects the tokens of the pieces of a text.
struct FoundTokens {
  // Adds a token that is these bytes of the text.
  void Add(int32_t id, size_t begin, size_t end) {
    ids.push_back(id);
    if (finds_places) places.push_back({begin, end});
  }

  bool finds_places = false;
  bool lacks_unknown = false;  // something is unknown, and the model has no token for that
  std::vector<int64_t> ids;
  std::vector<ByteRange> places;  // in the text that was split
};

}  // namespace linserve
