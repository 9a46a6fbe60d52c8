#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace linserve {

// The same tensor, cut at random places into pieces of up to `longest` bytes that lie apart, at no
// alignment.
inline Tensor InPieces(const Tensor& tensor, size_t longest, unsigned seed) {
  std::mt19937 random(seed);
  const auto owner = std::make_shared<std::vector<std::string>>();
  std::vector<Piece> pieces;
  for (size_t at = 0; at < tensor.byte_size();) {
    const size_t size = std::min(tensor.byte_size() - at, 1 + random() % longest);
    const size_t skipped = random() % 8;
    // A vector's move keeps no short string in its place: they are long.
    std::string& bytes = owner->emplace_back(skipped + size + 64, '\0');
    std::copy_n(reinterpret_cast<const char*>(tensor.bytes()) + at, size, &bytes[skipped]);
    pieces.push_back({reinterpret_cast<const std::byte*>(&bytes[skipped]), size});
    at += size;
  }
  return Tensor(tensor.dtype(), tensor.shape(),
                std::make_shared<const Pieces>(std::move(pieces), owner));
}

}  // namespace linserve
