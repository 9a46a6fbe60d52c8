#include "core/sequence/row_mask.h"

#include <algorithm>

namespace linserve {

std::optional<RowMask> RowMask::Of(const Signature& signature, const OutputSpec& output,
                                   const TensorMap& inputs) {
  if (inputs.contains(output.unmasked_with)) return std::nullopt;
  const auto mask = inputs.find(output.mask);
  if (mask == inputs.end()) return std::nullopt;
  return RowMask{signature.FindInput(output.mask), mask->second};
}

std::vector<int64_t> RowMask::Rows(int64_t length) const {
  std::vector<int64_t> rows;
  const int64_t known = std::min(length, places.elements());
  for (int64_t row = 0; row < known; ++row) {
    if ((places.bytes()[row] != std::byte{0}) != spec->hides) rows.push_back(row);
  }
  return rows;
}

}  // namespace linserve
