#include "text/sentencepiece/piece_trie.h"

#include <algorithm>
#include <deque>

namespace linserve {

PieceTrie::PieceTrie(std::vector<Entry> entries) : nodes_(1) {
  // A node that is to be filled holds the entries from `begin` to `end`, which agree in the first
  // `depth` bytes.
  struct Open {
    Node node;
    size_t begin;
    size_t end;
    size_t depth;
  };
  std::sort(entries.begin(), entries.end());
  std::deque<Open> open = {{kRoot, 0, entries.size(), 0}};
  for (; !open.empty(); open.pop_front()) {
    auto [node, begin, end, depth] = open.front();
    if (begin < end && entries[begin].first.size() == depth) {
      nodes_[node].value = entries[begin++].second;
    }
    nodes_[node].first = static_cast<Node>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      size_t next = begin + 1;
      while (next < end && entries[next].first[depth] == byte) ++next;
      open.push_back({static_cast<Node>(nodes_.size()), begin, next, depth + 1});
      nodes_.emplace_back().label = static_cast<uint8_t>(byte);
      ++nodes_[node].children;
      begin = next;
    }
  }
}

int32_t PieceTrie::Find(std::string_view text) const {
  Node node = kRoot;
  for (const char byte : text) {
    node = Next(node, byte);
    if (node == kNone) return -1;
  }
  return ValueAt(node);
}

size_t PieceTrie::LongestPrefix(std::string_view text) const {
  size_t longest = 0;
  Node node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Next(node, text[i]);
    if (node == kNone) break;
    if (ValueAt(node) >= 0) longest = i + 1;
  }
  return longest;
}

}  // namespace linserve
