#pragma once

#include <cstdint>

namespace linserve {

// Says what Linformer's keys and values are computed from: a source x [rows, width] of some
// sequences, maps W [key_width, width] to keys and to values, and matrices E [slots, length] along
// the length that serve all heads.
struct ProjectionSizes {
  int64_t sequences = 1;
  int64_t rows = 0;  // of all sequences
  int64_t width = 0;
  int64_t key_width = 0;  // of all heads
  int64_t slots = 0;      // of a sequence
  int64_t maps = 2;       // W: 1 where the values are the keys
  int64_t matrices = 2;   // E: 1 where keys and values share it
};

// Says whether (E·x)·Wᵀ takes fewer multiplications than E·(x·Wᵀ), which is the same. The first
// costs a product of width by key_width for each slot and none for each row. Where keys and values
// share E, it takes one product along the length and not two. Source: associativity in Wang et al.
// 2020 (arXiv:2006.04768), equation 7.
constexpr bool ProjectsLengthFirst(const ProjectionSizes& sizes) {
  const auto rows = static_cast<double>(sizes.rows);
  const auto slots = static_cast<double>(sizes.slots);
  const auto width = static_cast<double>(sizes.width);
  const auto key_width = static_cast<double>(sizes.key_width);
  const auto maps = static_cast<double>(sizes.maps);
  const double length_first =
      static_cast<double>(sizes.matrices) * rows * slots * width +
      maps * static_cast<double>(sizes.sequences) * slots * width * key_width;
  return length_first < maps * rows * key_width * (width + slots);
}

}  // namespace linserve
