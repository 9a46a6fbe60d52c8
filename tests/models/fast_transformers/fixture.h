#pragma once

#include <string>
#include <vector>

#include "models/model_fixture.h"

namespace linserve {

inline constexpr const char* kFastEncoder = "fast_transformers.TransformerEncoder";
inline constexpr const char* kFastDecoder = "fast_transformers.TransformerDecoder";

// Makes arguments of a small model whose rows are 12 wide. The last one counts where a key is given
// twice.
inline std::string FastArguments(const std::string& more) {
  return R"({"n_layers": 2, "n_heads": 3, "query_dimensions": 4, "value_dimensions": 4,
             "feed_forward_dimensions": 20, )" +
         more + "}";
}

}  // namespace linserve
