#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace linserve {

// Finds texts, and what begins with them, byte by byte.
class PieceTrie {
 public:
  using Node = uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = ~Node{0};
  using Entry = std::pair<std::string_view, int32_t>;  // a text and its value, at least 0

  PieceTrie() : PieceTrie(std::vector<Entry>()) {}
  // REQUIRES: no two entries have one text, and none is empty.
  explicit PieceTrie(std::vector<Entry> entries);

  // Returns where `byte` leads from a node; kNone if no text goes on so.
  Node Next(Node node, char byte) const {
    const Inner& inner = nodes_[node];
    const auto label = static_cast<unsigned char>(byte);
    // Halves the children until the one is left that the byte may lead to.
    Node child = inner.first;
    for (Node count = inner.children; count > 1;) {
      const Node half = count / 2;
      if (nodes_[child + half].label <= label) child += half;
      count -= half;
    }
    return inner.children > 0 && nodes_[child].label == label ? child : kNone;
  }

  // Returns the value of the text that ends at a node; -1 if none does.
  int32_t ValueAt(Node node) const { return nodes_[node].value; }

  // Returns the value of a text; -1 if it is no entry.
  int32_t Find(std::string_view text) const;

  // Returns the bytes of the longest entry that `text` begins with; 0 if there is none.
  size_t LongestPrefix(std::string_view text) const;

  bool empty() const { return nodes_[kRoot].children == 0; }

 private:
  struct Inner {
    Node first = 0;  // its children stand one after another, in the order of their labels
    int32_t value = -1;
    uint16_t children = 0;
    uint8_t label = 0;
  };

  std::vector<Inner> nodes_;
};

}  // namespace linserve
