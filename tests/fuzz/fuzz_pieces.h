#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace linserve {

// Cuts the bytes into at most 16 pieces: each is as long as the byte before it says, or shorter at
// the end.
inline std::vector<std::string> PiecesOf(const uint8_t* data, size_t size) {
  constexpr size_t kMostPieces = 16;
  std::vector<std::string> pieces;
  for (size_t at = 0; at < size && pieces.size() < kMostPieces;) {
    const size_t length = std::min<size_t>(data[at], size - at - 1);
    pieces.emplace_back(reinterpret_cast<const char*>(data) + at + 1, length);
    at += 1 + length;
  }
  return pieces;
}

}  // namespace linserve
