#include "models/transformers/global_tokens/global_params.h"

#include <algorithm>
#include <string>

namespace linserve::transformers {

std::vector<int64_t> WindowsOfLayers(Params& params, size_t layers) {
  constexpr const char* kKey = "attention_window";
  std::vector<int64_t> windows = params.NotNegativeList(kKey).value_or(std::vector<int64_t>{512});
  if (!params.IsList(kKey)) windows.resize(layers, windows[0]);
  if (windows.size() != layers) {
    params.Fail(kKey, "as many numbers as num_hidden_layers = " + std::to_string(layers));
  }
  const auto is_window = [](int64_t window) { return window > 0 && window % 2 == 0; };
  if (!std::all_of(windows.begin(), windows.end(), is_window)) {
    params.Fail(kKey, "even numbers of at least 2");
  }
  return windows;
}

GlobalRule GlobalBlocks(Params& params, int64_t longest) {
  const std::string type =
      params.Choice("attention_type", "block_sparse", {"block_sparse", "original_full"});
  const int64_t block = params.Positive("block_size", 64);
  const int64_t random = params.NotNegative("num_random_blocks", 3);
  if (type == "original_full" || block > longest || random > longest / block) return {};
  const GlobalRule rule{.block = block, .weight = 1 + random, .whole = (5 + 2 * random) * block};
  return rule.whole < longest ? rule : GlobalRule{};
}

}  // namespace linserve::transformers
