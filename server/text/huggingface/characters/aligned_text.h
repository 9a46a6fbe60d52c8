#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace linserve {

// Says which bytes of a text something was made of.
struct Origin {
  size_t begin = 0;
  size_t end = 0;
};

// Holds a text that was made of another, and of each of its bytes where that came from, if anybody
// asks.
struct AlignedText {
  // Appends bytes that come from one place.
  void Add(std::string_view bytes, Origin origin) {
    text += bytes;
    if (aligned) origins.insert(origins.end(), bytes.size(), origin);
  }

  // Appends bytes of another text, which is aligned if this one is.
  void AddFrom(const AlignedText& other, size_t begin, size_t end) {
    text.append(other.text, begin, end - begin);
    if (!aligned) return;
    origins.insert(origins.end(), other.origins.begin() + static_cast<std::ptrdiff_t>(begin),
                   other.origins.begin() + static_cast<std::ptrdiff_t>(end));
  }

  // Returns where a byte comes from. Where nobody asks, that is nowhere.
  Origin OriginAt(size_t at) const { return aligned ? origins[at] : Origin(); }

  void Clear() {
    text.clear();
    origins.clear();
  }

  // Drops bytes at the front.
  void EraseFront(size_t bytes) {
    text.erase(0, bytes);
    if (aligned) {
      origins.erase(origins.begin(), origins.begin() + static_cast<std::ptrdiff_t>(bytes));
    }
  }

  size_t held_bytes() const { return text.capacity() + origins.capacity() * sizeof(Origin); }

  std::string text{};
  std::vector<Origin> origins{};  // of each byte, if it is aligned
  bool aligned = false;
};

}  // namespace linserve
