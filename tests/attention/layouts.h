#pragma once

#include <limits>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/placed_layout.h"

// These are small batches for the tests of attention and of the kernels.
namespace linserve {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Lays out sequences one after another, each with `padded_length` rows; 0: packed, with its own
// rows only.
inline PlacedLayout LayoutOf(const std::vector<int64_t>& lengths, int64_t padded_length = 0) {
  return {LayOut(lengths, padded_length)};
}

inline PlacedLayout Packed(const std::vector<int64_t>& lengths) { return LayoutOf(lengths); }

inline PlacedLayout Padded(const std::vector<int64_t>& lengths, int64_t padded_length) {
  return LayoutOf(lengths, padded_length);
}

inline at::Tensor Matrix(const std::vector<std::vector<double>>& rows) {  // F32
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  return at::tensor(values, at::kDouble)
      .to(at::kFloat)
      .view({static_cast<int64_t>(rows.size()), -1});
}

inline at::Tensor Mask(const std::vector<bool>& keys) {
  at::Tensor mask = at::empty({static_cast<int64_t>(keys.size())}, at::kBool);
  for (size_t j = 0; j < keys.size(); ++j) mask[static_cast<int64_t>(j)] = bool{keys[j]};
  return mask;
}

// Returns the largest difference, which is infinite if one has a NaN.
inline double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor difference = (a.to(at::kDouble) - b.to(at::kDouble)).abs();
  if (difference.isnan().any().item<bool>()) return std::numeric_limits<double>::infinity();
  return difference.max().item<double>();
}

// Returns rows of `from`, padded, at the places that `layout` gives them; garbage elsewhere.
inline at::Tensor Spread(const at::Tensor& packed, const PlacedLayout& from,
                         const PlacedLayout& to) {
  at::Tensor spread = at::full({to.rows, packed.size(1)}, 1e6f);
  for (size_t i = 0; i < from.starts.size(); ++i) {
    spread.narrow(0, to.starts[i], to.lengths[i])
        .copy_(packed.narrow(0, from.starts[i], from.lengths[i]));
  }
  return spread;
}

}  // namespace linserve
