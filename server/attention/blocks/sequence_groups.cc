#include "attention/blocks/sequence_groups.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "attention/products/block_product.h"
#include "attention/rows/slices.h"

namespace linserve {
namespace {

// A thread computes so many groups before others may get a turn.
constexpr int64_t kGroupsOfThread = 4;

// Returns all sequences as groups; those of more rows than a block are groups of one.
std::vector<SequenceGroup> GroupsOf(const PlacedLayout& layout) {
  std::vector<SequenceGroup> groups;
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const int64_t end = layout.starts[i] + layout.lengths[i];
    if (!groups.empty() && end - groups.back().row <= kBlockRows) {
      ++groups.back().count;
      groups.back().rows = end - groups.back().row;
    } else {
      groups.push_back({i, 1, layout.starts[i], layout.lengths[i]});
    }
  }
  return groups;
}

}  // namespace

void ForSequenceGroups(
    const PlacedLayout& layout, int64_t scratch_elements,
    const std::function<void(const SequenceGroup& group, float* scratch)>& together,
    const std::function<void(size_t sequence)>& alone) {
  std::vector<SequenceGroup> groups;
  std::vector<size_t> others;
  for (const SequenceGroup& group : GroupsOf(layout)) {
    if (group.rows <= kBlockRows) {
      groups.push_back(group);
    } else {
      others.push_back(group.first);
    }
  }
  // Fewer groups than threads are computed sequence by sequence, which all threads share.
  if (std::ssize(groups) < BlockThreads()) {
    for (const SequenceGroup& group : groups) {
      for (size_t i = group.first; i < group.end(); ++i) others.push_back(i);
    }
    groups.clear();
  }
  const int64_t at_once = kGroupsOfThread * BlockThreads();
  for (int64_t first = 0; first < std::ssize(groups); first += at_once) {
    const int64_t end = std::min<int64_t>(std::ssize(groups), first + at_once);
    ForSideBySide(first, end, scratch_elements, [&](int64_t i, float* scratch) {
      together(groups[static_cast<size_t>(i)], scratch);
    });
    int64_t done = 0;
    for (int64_t i = first; i < end; ++i) done += groups[static_cast<size_t>(i)].rows;
    RowsDone(done);
  }
  for (const size_t sequence : others) alone(sequence);
}

}  // namespace linserve
